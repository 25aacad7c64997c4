#include <algorithm>
#include <array>
#include <sstream>

#include "tests/simulation/scenario.h"

namespace uib::simulation {

using transport::Completion;
using transport::QpEvent;
using transport::QpState;
using transport::Service;
using transport::Status;

const std::string& Scenario::run() {
    world_.run();
    if (!world_.failed()) finish();
    return world_.wrong();
}

void Scenario::sent(Qp& qp, const Completion& completion) {
    outbound_.at(&qp)->on_sent(completion);
}

// Each receive completes once, those of a queue of its own in order.
ReceiveList* Scenario::settle_buffer(Qp& qp, const Completion& completion) {
    ReceiveList& list = receives_of(qp, completion);
    const std::uint64_t id = completion.wr_id;
    const bool known = id < list.buffers.size() && completion.wqe_index == id;
    if (!known || list.buffers[id].state != ReceiveList::State::kTaken) {
        world_.fail("a receive completed that was not taken, or twice: " + std::to_string(id));
        return nullptr;
    }
    if (!list.shared() && id != list.completed++)
        world_.fail("receives completed out of order: " + std::to_string(id));
    if (list.shared() != ((completion.flags & ipc::kCqeSrq) != 0))
        world_.fail("SRQ flag of receive " + std::to_string(id));
    const bool good = completion.status == Status::kSuccess;
    list.buffers[id].state = good ? ReceiveList::State::kDone : ReceiveList::State::kFailed;
    return &list;
}

void Scenario::received(Qp& qp, const Completion& completion) {
    ReceiveList* list = settle_buffer(qp, completion);
    if (list == nullptr) return;
    if (qp.service() != Service::kUd) {
        inbound_.at(&qp)->on_received(qp, *list, completion);
        return;
    }
    if (completion.status != Status::kSuccess) {
        if (qp.machine->state() != QpState::kError) world_.fail("a datagram's receive ended in error");
        return;
    }
    for (Flow& flow : flows_)
        if (flow.from().number() == completion.source_qp && flow.from().adapter->lid() == completion.slid &&
            flow.claims_datagram(qp, completion))
            return;
    world_.fail("a datagram arrived that was not sent, or not whole, or twice");
}

void Scenario::finish() {
    Images images;
    for (const Adapter& adapter : world_.adapters) images.emplace(&adapter, Image(adapter));
    for (const Adapter& adapter : world_.adapters)
        for (const ReceiveList& list : adapter.receive_lists)
            for (const ReceiveList::Buffer& buffer : list.buffers)
                if (buffer.state == ReceiveList::State::kTaken || buffer.state == ReceiveList::State::kFailed)
                    images.at(&adapter).leave_open(buffer.pieces);
    for (Flow& flow : flows_)
        if (!world_.failed()) flow.finish(images);
    for (Adapter& adapter : world_.adapters) {
        if (const std::string wrong = words_.check(adapter, images.at(&adapter)); !wrong.empty())
            world_.fail(wrong);
        for (const Qp& qp : adapter.qps) check_events(qp);
    }
    if (!world_.failed()) check_memory(images);
}

void Scenario::check_memory(const Images& images) {
    for (const auto& [adapter, image] : images) {
        const std::size_t at = image.first_difference();
        if (at != adapter->initial.size())
            world_.fail("memory of adapter " + std::to_string(adapter->lid()) + " differs at " +
                        std::to_string(at));
    }
}

// A queue pair on a shared queue tells once that it takes nothing any more; none of the events comes twice.
void Scenario::check_events(const Qp& qp) {
    const auto count = [&](QpEvent event) { return std::count(qp.events.begin(), qp.events.end(), event); };
    const bool tells =
        qp.machine->state() == QpState::kError && qp.receives != nullptr && qp.receives->shared();
    if (count(QpEvent::kLastWqeReached) != (tells ? 1 : 0))
        world_.fail("last WQE event of qp " + std::to_string(qp.number()));
    if (count(QpEvent::kFatal) != 0) world_.fail("fatal event of qp " + std::to_string(qp.number()));
}

void Scenario::add_to(Totals& totals) const {
    totals.add("packets", world_.packets);
    totals.add("recoveries from SQE", recoveries_);
    for (const Adapter& adapter : world_.adapters) {
        for (const Qp& qp : adapter.qps) {
            const transport::QpCounters& c = qp.machine->counters();
            totals.add("packets resent", c.retransmitted_packets);
            totals.add("timeouts", c.timeouts);
            totals.add("sequence NAKs", c.sequence_naks_sent);
            totals.add("implied NAKs", c.implied_naks);
            totals.add("RNR NAKs", c.rnr_naks_sent);
            totals.add("duplicate requests", c.duplicate_requests);
            totals.add("duplicate responses", c.duplicate_responses);
            totals.add("datagrams without receive", c.dropped_no_receive);
            if (qp.machine->state() == QpState::kError) totals.add("QPs in error", 1);
            if (qp.machine->state() == QpState::kSqe) totals.add("QPs in SQE", 1);
        }
    }
    for (const Flow& flow : flows_) {
        for (std::size_t i = 0; i < flow.size(); ++i) {
            const Message& message = flow.message(i);
            totals.add(work_name(static_cast<std::uint8_t>(message.opcode)), 1);
            if (message.illegal != Illegal::kNone)
                totals.add("illegal work " + std::to_string(static_cast<int>(message.illegal)), 1);
        }
        totals.add(flow.plan().xrc_receives.empty() ? "flows" : "XRC flows", 1);
    }
}

std::string Scenario::describe() const {
    constexpr std::array kServices = {"RC", "UC", "UD", "XRC initiator", "XRC target", "raw"};
    std::ostringstream out;
    for (const Adapter& adapter : world_.adapters) {
        for (const Qp& qp : adapter.qps) {
            const transport::QpCounters& c = qp.machine->counters();
            const transport::QpParameters& p = qp.parameters;
            out << "adapter " << adapter.lid() << " qp " << std::hex << qp.number() << " to " << p.dest_qp
                << std::dec << ' ' << kServices.at(static_cast<std::size_t>(qp.service())) << " state "
                << static_cast<int>(qp.machine->state()) << " MTU " << p.mtu_bytes << " reads "
                << int{p.max_rd_atomic} << '/' << int{p.max_dest_rd_atomic} << " retries "
                << int{p.retry_count} << '/' << int{p.rnr_retry} << (p.path.global ? " GRH" : "")
                << (qp.receives != nullptr && qp.receives->shared() ? " SRQ" : "") << "; dropped: state "
                << c.dropped_state << " service " << c.dropped_service << " P_Key " << c.dropped_pkey
                << " GID " << c.dropped_gid << " LID " << c.dropped_lid << " GRH " << c.dropped_grh
                << " sequence " << c.dropped_sequence << "; timeouts " << c.timeouts << " implied NAKs "
                << c.implied_naks << " ghosts " << c.ghost_responses << '\n';
        }
    }
    return out.str();
}

}  // namespace uib::simulation
