// Transitions, completions and packet header checks that all services share (IBA 10.3.1, 9.6, 9.9).
#include "engine/transport/machine.h"

#include <bit>
#include <cstring>

namespace uib::transport {

Machine::Machine(const QpConfig& config, Host& host) : QueuePair(config, host), receive_(*this) {}

void Machine::apply(QpState to, const QpParameters& parameters, bool drained_event) {
    const QpState from = state_;
    parameters_ = parameters;
    mtu_shift_ = static_cast<std::uint32_t>(std::bit_width(parameters.mtu_bytes | 256U)) - 1;
    if (to == QpState::kReset || from == QpState::kReset) {
        // A queue that was reset with the QP counts from 0 and checks against what is consumed.
        consumed_ = 0;
        consumed_ = config_.send_queue != nullptr ? config_.send_queue->producer() : 0;
        established_ = fatal_raised_ = drain_event_ = last_wqe_event_ = receive_in_error_ = false;
        receive_.forget();
        restart();
    }
    if (to == QpState::kRtr && from != QpState::kRtr) start_receiving();
    if (to == QpState::kRts && from == QpState::kRtr) start_sending();
    if (to == QpState::kError) {
        if (from != QpState::kError) stop();
        enter_error();
    }
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
    packet.bth.pkey = parameters_.pkey;
    packet.bth.dest_qp = parameters_.dest_qp;
}

void Machine::transmit(const net::Packet& packet) {
    ++counters_.packets_sent;
    counters_.bytes_sent += packet.payload.size();
    host_.send(packet);
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

// The GID itself, or its port's default prefix in place of the prefix (9.6.1.5).
bool gids_match(const net::Gid& got, const net::Gid& want) {
    constexpr std::size_t kHalf = 8;
    static constexpr std::uint8_t kLinkLocal[kHalf] = {0xFE, 0x80};
    if (std::memcmp(got.data() + kHalf, want.data() + kHalf, kHalf) != 0) return false;
    return std::memcmp(got.data(), want.data(), kHalf) == 0 ||
           std::memcmp(got.data(), kLinkLocal, kHalf) == 0;
}

}  // namespace

bool Machine::accept_pkey(const net::Packet& packet) {
    if (pkeys_match(packet.bth.pkey, parameters_.pkey)) return true;
    ++counters_.dropped_pkey;
    return false;
}

bool Machine::accept_connected(const net::Packet& packet) {
    const Path& path = parameters_.path;
    bool right = packet.has_grh == path.global && packet.lrh.dlid == path.slid;
    if (right && path.global) {
        right = gids_match(packet.grh.dgid, path.grh.sgid) && gids_match(packet.grh.sgid, path.grh.dgid);
    } else if (right) {
        right = packet.lrh.slid == path.dlid;
    }
    if (!right) {
        ++counters_.dropped_address;
        return false;
    }
    return accept_pkey(packet);
}

}  // namespace uib::transport
