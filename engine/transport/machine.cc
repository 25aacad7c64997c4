// Transitions, completions and packet header checks that all services share (IBA 10.3.1, 9.6, 9.9).
#include "engine/transport/machine.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "engine/transport/static_rate.h"
#include "net/wire/length.h"

namespace uib::transport {

Machine::Machine(const QpConfig& config, Host& host) : QueuePair(config, host), receive_(*this) {}

void Machine::apply(QpState to, const QpParameters& parameters, bool drained_event) {
    const QpState from = state_;
    parameters_ = parameters;
    port_ = host_.port_of(*this);
    mtu_shift_ = static_cast<std::uint32_t>(std::bit_width(parameters.mtu_bytes | 256U)) - 1;
    if (to == QpState::kReset || from == QpState::kReset) {
        // A queue that was reset with the QP counts from 0 and checks against what is consumed.
        consumed_ = 0;
        consumed_ = config_.send_queue != nullptr ? config_.send_queue->producer() : 0;
        established_ = fatal_raised_ = drain_event_ = last_wqe_event_ = receive_in_error_ = false;
        receive_.forget();
        migration_.reset();
        held_until_ = kNever;
        restart();
    }
    if (to == QpState::kRtr && from != QpState::kRtr) start_receiving();
    if (to == QpState::kRts && from == QpState::kRtr) start_sending();
    if (to == QpState::kError) {
        if (from != QpState::kError) stop();
        enter_error();
    }
    if (migration_.request(parameters_) == PathMigration::Verdict::kMigrate) migrate();
    set_rate_limit(parameters_.path.static_rate);
    drain_event_ = to == QpState::kSqd && drained_event;
    state_ = to;
    refresh();
}

void Machine::address(net::Packet& packet) const {
    const Path& path = parameters_.path;
    packet.lrh.dlid = path.dlid;
    packet.lrh.slid = path.slid;
    packet.lrh.sl = path.sl;
    packet.has_grh = path.global;
    packet.grh = path.grh;
    packet.bth.mig_req = migration_.migrated();
    packet.bth.pkey = parameters_.pkey;
    packet.bth.dest_qp = parameters_.dest_qp;
}

void Machine::transmit(net::Packet& packet) {
    packet.bth.pad = static_cast<std::uint8_t>(-packet.payload.size() & 3);
    ++counters_.packets_sent;
    counters_.bytes_sent += packet.payload.size();
    host_.send(packet);
    if (rate_limit_ != 0)
        port_.static_rate->sent(packet.lrh.dlid, net::packet_bytes(packet), rate_limit_, host_.now());
}

void Machine::set_rate_limit(std::uint8_t code) {
    rate_limit_ = code == 0 || port_.static_rate == nullptr ? 0 : port_.static_rate->limit(code);
    if (rate_limit_ == 0) held_until_ = kNever;
}

std::uint32_t Machine::admit_limited(std::uint32_t budget, net::Lid dlid) {
    const Time free_at = port_.static_rate->free_at(dlid);
    if (free_at > host_.now()) {
        held_until_ = free_at;
        ++counters_.rate_waits;
        return 0;
    }
    held_until_ = kNever;
    return std::min(budget, 1U);
}

void Machine::release() {
    if (held_until_ <= host_.now()) held_until_ = kNever;
}

void Machine::complete_request(std::uint64_t wr_id, ipc::WorkOpcode opcode, std::uint32_t length,
                               Status status, std::uint16_t vendor_error) {
    Completion completion;
    completion.wr_id = wr_id;
    completion.status = status;
    completion.opcode = static_cast<std::uint8_t>(opcode);
    completion.byte_len = length;
    completion.wqe_index = consumed_;
    completion.vendor_error = vendor_error;
    ++consumed_;
    if (!host_.complete_send(*this, completion)) completion_queue_failed();
}

void Machine::complete_receive(const Completion& completion) {
    if (!host_.complete_receive(*this, completion)) completion_queue_failed();
}

// Classes F and G: the QP goes to error with an affiliated event (C9-218, C9-225).
void Machine::completion_queue_failed() {
    if (!fatal_raised_) {
        fatal_raised_ = true;
        raise(QpEvent::kFatal);
    }
    enter_error();
}

void Machine::enter_error() {
    if (state_ == QpState::kError) return;
    state_ = QpState::kError;
    drain_event_ = false;
    receive_in_error_ = true;
    last_wqe_event_ = config_.receive_queue != nullptr && config_.receive_queue->shared();
}

void Machine::receive_fault(Status status) {
    ++counters_.local_errors;
    if (receive_.in_use()) {
        receive_.fail(status);
    } else {
        raise(QpEvent::kFatal);
    }
    enter_error();
}

void Machine::enter_send_error() {
    if (state_ == QpState::kRts || state_ == QpState::kSqd) state_ = QpState::kSqe;
}

void Machine::note_arrival() {
    if (state_ != QpState::kRtr || established_) return;
    established_ = true;
    raise(QpEvent::kCommunicationEstablished);
}

Status Machine::execute_local(const SendRequest& request) {
    if (request.opcode == ipc::WorkOpcode::kBindWindow) return host_.bind_window(*this, request);
    const memory::AccessError error = keys().local_invalidate(pd(), number(), request.immediate);
    return error == memory::AccessError::kNone ? Status::kSuccess : Status::kWindowBind;
}

void Machine::raise_if_drained() {
    if (!wants_drained_event()) return;
    drain_event_ = false;
    raise(QpEvent::kSendQueueDrained);
}

namespace {

// Low 15 bits equal and not zero, at least one full member (10.9.3).
bool pkeys_match(std::uint16_t left, std::uint16_t right) {
    return ((left ^ right) & 0x7FFF) == 0 && (left & 0x7FFF) != 0 && ((left | right) & 0x8000) != 0;
}

// The GID itself, or the default prefix in place of its own (C9-47.1.1).
bool gids_match(const net::Gid& got, const net::Gid& want) {
    constexpr std::size_t kHalf = 8;
    static constexpr std::uint8_t kLinkLocal[kHalf] = {0xFE, 0x80};
    if (std::memcmp(got.data() + kHalf, want.data() + kHalf, kHalf) != 0) return false;
    return std::memcmp(got.data(), want.data(), kHalf) == 0 ||
           std::memcmp(got.data(), kLinkLocal, kHalf) == 0;
}

// Reserved (zero), loopback or multicast: neither end of a connection has such a GID (C9-47.1.1).
bool names_an_end(const net::Gid& gid) {
    if (gid[0] == 0xFF) return false;
    static constexpr std::size_t kLast = sizeof(net::Gid) - 1;
    static constexpr std::uint8_t kZero[kLast] = {};
    return gid[kLast] > 1 || std::memcmp(gid.data(), kZero, kLast) != 0;
}

constexpr bool multicast(net::Lid lid) {
    return lid >= net::kMulticastLidFirst && lid != net::kPermissiveLid;
}

}  // namespace

bool Machine::accept_pkey(const net::Packet& packet) {
    if (pkeys_match(packet.bth.pkey, parameters_.pkey)) return true;
    ++counters_.dropped_pkey;
    return false;
}

bool Machine::accept_port_pkey(const net::Packet& packet) {
    if (port_.pkeys.empty()) return accept_pkey(packet);
    const bool found = std::any_of(port_.pkeys.begin(), port_.pkeys.end(),
                                   [&](std::uint16_t pkey) { return pkeys_match(packet.bth.pkey, pkey); });
    if (!found) ++counters_.dropped_pkey;
    return found;
}

// Presence of the GRH, GIDs, LIDs, P_Key: 9.6.1.2 to 9.6.1.5. The SLID counts only without a GRH (C9-54).
Machine::Fault Machine::path_fault(const net::Packet& packet, const Path& path, std::uint16_t pkey) {
    if (packet.has_grh != path.global) return &QpCounters::dropped_grh;
    if (path.global && !(names_an_end(packet.grh.sgid) && gids_match(packet.grh.dgid, path.grh.sgid) &&
                         names_an_end(packet.grh.dgid) && gids_match(packet.grh.sgid, path.grh.dgid)))
        return &QpCounters::dropped_gid;
    if (packet.lrh.dlid != path.slid) return &QpCounters::dropped_lid;
    if (!path.global && (packet.lrh.slid != path.dlid || multicast(packet.lrh.slid)))
        return &QpCounters::dropped_lid;
    if (!pkeys_match(packet.bth.pkey, pkey)) return &QpCounters::dropped_pkey;
    return nullptr;
}

bool Machine::accept_connected(const net::Packet& packet) {
    const Fault fault = path_fault(packet, parameters_.path, parameters_.pkey);
    if (migration_.migrated()) {
        if (fault == nullptr) return true;
    } else if (fault == nullptr ||
               path_fault(packet, parameters_.alternate, parameters_.alternate_pkey) == nullptr) {
        note_mig_req(packet);
        return true;
    }
    ++(counters_.*fault);
    return false;
}

}  // namespace uib::transport
