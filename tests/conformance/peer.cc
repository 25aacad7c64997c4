#include "tests/conformance/peer.h"

#include <sstream>

namespace uib::conformance {

namespace {

std::string number(std::uint64_t value) {
    return std::to_string(value);
}

std::string status_text(Status status) {
    return "status " + number(static_cast<std::uint64_t>(status));
}

}  // namespace

Peer::Peer(transport::Service service, std::uint32_t number)
    : machine_(service, number), wire_(machine_), start_(machine_.clock) {
    parameters().sq_psn = kStartPsn;
    parameters().rq_psn = kStartPsn;
    machine_.srq_number = kXrcSrq;
    machine_.receive_queue.is_shared = service == transport::Service::kXrcTarget;
}

void Peer::connect(QpState to, std::uint32_t peer_number) {
    machine_.connect(peer_number, to);
}

void Peer::moves_to(QpState state, bool drained_event) {
    note("the client moves the QP to state " + number(static_cast<std::uint64_t>(state)));
    machine_.qp->apply(state, machine_.parameters, drained_event);
    settle();
}

void Peer::note(const std::string& line) {
    std::ostringstream out;
    out << "  " << now() / 1000 << '.' << (now() % 1000) / 100 << " us  " << line;
    transcript_.push_back(out.str());
}

void Peer::fail(Where where, const std::string& what) {
    std::ostringstream out;
    out << what << "\nThe exchange" << (told_ == 0 ? "" : " since the last failure")
        << " (-> to the machine, <- from it):\n";
    for (; told_ < transcript_.size(); ++told_) out << transcript_[told_] << '\n';
    GTEST_MESSAGE_AT_(where.file_name(), static_cast<int>(where.line()), out.str().c_str(),
                      testing::TestPartResult::kNonFatalFailure);
}

// Takes what the machine has sent through the wire, and writes down what its client has seen.
void Peer::collect() {
    for (; sends_noted_ < machine_.sends.size(); ++sends_noted_) {
        const Completion& done = machine_.sends[sends_noted_];
        note("   send " + number(done.wr_id) + " completes, " + status_text(done.status));
    }
    for (; receives_noted_ < machine_.receives.size(); ++receives_noted_) {
        const Completion& done = machine_.receives[receives_noted_];
        note("   receive " + number(done.wr_id) + " completes, " + status_text(done.status));
    }
    for (; events_noted_ < machine_.events.size(); ++events_noted_)
        note("   event " + number(static_cast<std::uint64_t>(machine_.events[events_noted_])));
    for (const auto& sent : machine_.take_out()) {
        Carried carried = Wire::carry(sent.whole());
        carried.at = now();
        note("<- " + Wire::text(carried));
        const std::string violation = Wire::violation(carried);
        if (!violation.empty()) fail(Where::current(), "Every packet must hold:" + violation);
        heard_.push_back(std::move(carried));
    }
}

void Peer::settle() {
    if (!held_) machine_.run();
    collect();
}

void Peer::step(std::uint32_t packets) {
    machine_.qp->run(packets);
    machine_.mover().end_turn();
    collect();
}

void Peer::sends(const Frame& frame) {
    settle();
    const Carried carried = wire_.carry(frame);
    note("-> " + Wire::text(carried));
    // A raw packet goes to the raw service, never to a queue pair of IBA transport (C9-34).
    const bool transport = carried.packet.kind == net::PacketKind::kTransport;
    if (carried.error == net::DecodeError::kNone && transport) machine_.deliver(carried.packet);
    settle();
}

Carried Peer::hears(Where where) {
    settle();
    if (heard_.empty()) {
        fail(where, "A packet was expected, and nothing came.");
        // Something to look at, so that the script can go on.
        net::Packet nothing;
        nothing.bth.opcode = net::opcode(net::Service::kUd, Op::kSendOnly);
        return Wire::carry(nothing);
    }
    Carried next = std::move(heard_.front());
    heard_.pop_front();
    return next;
}

void Peer::expects(const Frame& frame, Where where) {
    settle();
    if (heard_.empty()) {
        fail(where, "A packet was expected, and nothing came.");
        return;
    }
    const Carried got = hears(where);
    const std::string difference = Wire::difference(frame, got);
    if (!difference.empty()) fail(where, "Not the packet that was expected:" + difference);
}

void Peer::expects_nothing(Where where) {
    settle();
    if (heard_.empty()) return;
    fail(where, "Nothing was expected, and a packet came: " + Wire::text(heard_.front()));
    heard_.clear();
}

std::vector<Carried> Peer::hears_all() {
    settle();
    std::vector<Carried> all;
    for (Carried& carried : heard_) all.push_back(std::move(carried));
    heard_.clear();
    return all;
}

void Peer::after(Time time) {
    settle();
    const Time end = machine_.clock + time;
    while (machine_.qp->next_timer() <= end) {
        const Time next = machine_.qp->next_timer();
        machine_.advance(next > machine_.clock ? next - machine_.clock : 0);
        settle();
        if (machine_.qp->next_timer() == next && next <= machine_.clock) break;  // it stands and falls due
    }
    machine_.clock = end;
    settle();
}

Work Peer::work(WorkOpcode opcode, std::uint32_t length, std::uint64_t offset) const {
    Work work;
    work.opcode = opcode;
    if (length > 0) work.entries = {machine_.entry(offset, length)};
    work.remote_address = kRemoteAddress;
    work.rkey = kRemoteKey;
    work.xrc_srq = kXrcSrq;
    return work;
}

void Peer::posts(WorkOpcode opcode, std::uint32_t length, std::uint8_t flags) {
    Work request = work(opcode, length);
    request.flags = flags;
    posts(request);
}

void Peer::posts_receive(std::uint64_t wr_id, std::uint64_t offset, std::uint32_t length) {
    machine_.post_receive(wr_id, offset, length);
}

Completion Peer::completes(Status status, std::optional<std::uint64_t> wr_id, Where where) {
    settle();
    const std::uint64_t wanted = wr_id.value_or(next_wr_id_);
    next_wr_id_ = wanted + 1;
    if (sends_seen_ == machine_.sends.size()) {
        fail(where, "Send " + number(wanted) + " was expected to complete, and did not.");
        return {};
    }
    const Completion& done = machine_.sends[sends_seen_++];
    if (done.wr_id != wanted || done.status != status)
        fail(where, "Send " + number(wanted) + " was expected to complete with " + status_text(status) +
                        ", but " + number(done.wr_id) + " did with " + status_text(done.status));
    return done;
}

Completion Peer::receives(std::uint64_t wr_id, Status status, Where where) {
    settle();
    if (receives_seen_ == machine_.receives.size()) {
        fail(where, "Receive " + number(wr_id) + " was expected to complete, and did not.");
        return {};
    }
    const Completion& done = machine_.receives[receives_seen_++];
    if (done.wr_id != wr_id || done.status != status)
        fail(where, "Receive " + number(wr_id) + " was expected to complete with " + status_text(status) +
                        ", but " + number(done.wr_id) + " did with " + status_text(done.status));
    return done;
}

void Peer::completes_nothing(Where where) {
    settle();
    if (sends_seen_ < machine_.sends.size())
        fail(where, "Send " + number(machine_.sends[sends_seen_].wr_id) + " completed unexpectedly with " +
                        status_text(machine_.sends[sends_seen_].status));
    sends_seen_ = machine_.sends.size();
}

void Peer::receives_nothing(Where where) {
    settle();
    if (receives_seen_ < machine_.receives.size())
        fail(where, "Receive " + number(machine_.receives[receives_seen_].wr_id) +
                        " completed unexpectedly with " +
                        status_text(machine_.receives[receives_seen_].status));
    receives_seen_ = machine_.receives.size();
}

void Peer::raises(QpEvent event, Where where) {
    settle();
    if (events_seen_ == machine_.events.size()) {
        fail(where, "Event " + number(static_cast<std::uint64_t>(event)) + " was expected.");
        return;
    }
    const QpEvent got = machine_.events[events_seen_++];
    if (got != event)
        fail(where, "Event " + number(static_cast<std::uint64_t>(event)) + " was expected, not " +
                        number(static_cast<std::uint64_t>(got)));
}

void Peer::raises_nothing(Where where) {
    settle();
    if (events_seen_ < machine_.events.size())
        fail(where, "Event " + number(static_cast<std::uint64_t>(machine_.events[events_seen_])) +
                        " was not expected.");
    events_seen_ = machine_.events.size();
}

void Peer::forgets() {
    settle();
    heard_.clear();
    sends_seen_ = machine_.sends.size();
    receives_seen_ = machine_.receives.size();
    events_seen_ = machine_.events.size();
}

void Peer::ends() {
    release();
    expects_nothing();
    completes_nothing();
    receives_nothing();
    raises_nothing();
}

}  // namespace uib::conformance
