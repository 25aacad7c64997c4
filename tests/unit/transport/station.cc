#include "tests/unit/transport/station.h"

#include <algorithm>

namespace uib::transport::testing {

void ListSendQueue::fetch(std::uint32_t index, SendRequest& out) {
    ++fetches;
    const Work& work = works.at(index - base);
    out.wr_id = index;
    out.index = index;
    out.opcode = work.opcode;
    out.flags = work.flags;
    out.malformed = work.malformed;
    out.immediate = work.immediate;
    out.rkey = work.rkey;
    out.remote_address = work.remote_address;
    out.compare_add = work.compare_add;
    out.swap = work.swap;
    out.remote_qpn = work.remote_qpn;
    out.remote_qkey = work.remote_qkey;
    out.xrc_srq = work.xrc_srq;
    out.address_vector = work.address_vector;
    out.length = static_cast<std::uint32_t>(work.inline_data.size());
    out.inline_data = work.inline_data;
    out.sge_count = static_cast<std::uint32_t>(work.entries.size());
    std::copy(work.entries.begin(), work.entries.end(), out.sge.begin());
    for (const auto& entry : work.entries) out.length += entry.length;
}

bool ListReceiveQueue::take(ReceiveRequest& out) {
    if (posted.empty()) return false;
    const Entry& entry = posted.front();
    out.wr_id = entry.wr_id;
    out.slot = taken++;
    out.malformed = entry.malformed;
    out.length = 0;
    for (const auto& part : entry.entries) out.length += part.length;
    out.sge_count = static_cast<std::uint32_t>(entry.entries.size());
    std::copy(entry.entries.begin(), entry.entries.end(), out.sge.begin());
    out.inline_area = {};
    if (inline_receives) {
        areas.emplace_back(ipc::kAutoInlineBytes, std::byte{0xEE});
        out.inline_area = areas.back();
    }
    posted.pop_front();
    return true;
}

Station::Station(Service service, std::uint32_t number, bool lend)
    : space(std::make_shared<memory::BufferSpace>(kMemory, kBase, lend)) {
    memory::RegionInit init;
    init.pd = 1;
    init.access = ipc::kAccessLocalWrite | ipc::kAccessRemoteWrite | ipc::kAccessRemoteRead |
                  ipc::kAccessRemoteAtomic | ipc::kAccessBindWindow;
    init.iova = kBase;
    init.length = kMemory;
    init.space = space;
    init.space_address = kBase;
    region = keys_.add_region(std::move(init));
    QpConfig config;
    config.number = number;
    config.service = service;
    config.pd = 1;
    config.max_send_wr = 4096;
    config.xrc_domain = kXrcDomain;
    const bool target = service == Service::kXrcTarget;
    config.send_queue = target ? nullptr : &send_queue;
    config.receive_queue = target || service == Service::kXrcInitiator ? nullptr : &receive_queue;
    receive_queue.is_shared = target;
    qp = QueuePair::make(config, *this);
    parameters.mtu_bytes = 256;
    parameters.access = ipc::kAccessRemoteWrite | ipc::kAccessRemoteRead | ipc::kAccessRemoteAtomic;
    parameters.timeout = 14;
    parameters.retry_count = 3;
    parameters.rnr_retry = 3;
    parameters.min_rnr_timer = 12;
    parameters.max_rd_atomic = 4;
    parameters.max_dest_rd_atomic = 4;
    parameters.qkey = 0x1234;
    parameters.sq_psn = number << 8;
}

void Station::connect(std::uint32_t peer_number, QpState to) {
    parameters.dest_qp = peer_number;
    parameters.path.slid = static_cast<net::Lid>(qp->config().number);
    parameters.path.dlid = static_cast<net::Lid>(peer_number);
    if (parameters.rq_psn == 0) parameters.rq_psn = peer_number << 8;
    for (const QpState state : {QpState::kInit, QpState::kRtr, QpState::kRts}) {
        qp->apply(state, parameters, false);
        if (state == to) break;
    }
}

bool Station::complete_send(QueuePair&, const Completion& completion) {
    if (queue_full) return false;
    sends.push_back(completion);
    if (on_completion) on_completion(completion);
    return true;
}

bool Station::complete_receive(QueuePair&, const Completion& completion) {
    if (queue_full) return false;
    receives.push_back(completion);
    if (on_completion) on_completion(completion);
    return true;
}

void Station::raise(QueuePair&, QpEvent event) {
    events.push_back(event);
}

Status Station::bind_window(QueuePair&, const SendRequest& request) {
    binds.push_back(request.wr_id);
    return bind_result;
}

const XrcReceiveQueue* Station::xrc_receive_queue(std::uint32_t number, std::uint32_t domain) {
    if (number == 0 || number != srq_number || domain != srq_domain) return nullptr;
    xrc_queue_ = {&receive_queue, srq_pd, 0, srq_number};
    return &xrc_queue_;
}

void Station::post_receive(std::uint64_t wr_id, std::uint64_t address, std::uint32_t length) {
    receive_queue.posted.push_back({wr_id, {entry(address, length)}, false});
}

void Station::run(std::uint32_t burst) {
    for (int turn = 0; turn < 1000 && qp->wants_run(); ++turn) {
        const std::size_t before = out.size() + sends.size() + receives.size() + events.size();
        qp->run(burst);
        mover_.end_turn();
        if (turn > 3 && out.size() + sends.size() + receives.size() + events.size() == before) break;
    }
}

std::vector<SentPacket> Station::take_out() {
    std::vector<SentPacket> taken;
    taken.swap(out);
    return taken;
}

std::byte pattern(unsigned seed, std::size_t index) {
    return static_cast<std::byte>((seed * 131 + index * 7 + (index >> 8)) & 0xFF);
}

void Station::fill(std::uint64_t offset, std::size_t length, unsigned seed) {
    for (std::size_t i = 0; i < length; ++i) at(offset)[i] = pattern(seed, i);
}

bool Station::holds(std::uint64_t offset, std::size_t length, unsigned seed) {
    for (std::size_t i = 0; i < length; ++i)
        if (at(offset)[i] != pattern(seed, i)) return false;
    return true;
}

net::Packet packet_for(const Station& to, net::Operation operation, std::uint32_t psn,
                       std::span<const std::byte> payload, bool ack_req) {
    net::Packet packet;
    net::Service service = net::Service::kRc;
    if (to.qp->config().service == Service::kUc) service = net::Service::kUc;
    if (to.qp->config().service == Service::kUd) service = net::Service::kUd;
    if (to.qp->config().service == Service::kXrcInitiator || to.qp->config().service == Service::kXrcTarget)
        service = net::Service::kXrc;
    packet.lrh.dlid = to.parameters.path.slid;
    packet.lrh.slid = to.parameters.path.dlid;
    packet.bth.opcode = net::opcode(service, operation);
    packet.bth.psn = psn & 0xFFFFFF;
    packet.bth.dest_qp = to.qp->config().number;
    packet.bth.ack_req = ack_req;
    packet.xrc_srq = to.srq_number;
    packet.deth = {to.parameters.qkey, to.parameters.dest_qp};
    packet.payload = payload;
    return packet;
}

net::Packet response_for(const Station& to, net::Operation operation, std::uint32_t psn,
                         std::uint8_t syndrome, std::uint32_t msn, std::span<const std::byte> payload) {
    net::Packet packet = packet_for(to, operation, psn, payload);
    packet.aeth = {syndrome, msn};
    return packet;
}

void Pair::settle(std::uint32_t burst) {
    for (int round = 0; round < 10'000; ++round) {
        a.run(burst);
        b.run(burst);
        const std::vector<SentPacket> from_a = a.take_out();
        const std::vector<SentPacket> from_b = b.take_out();
        if (from_a.empty() && from_b.empty()) return;
        for (const SentPacket& sent : from_a) {
            seen.push_back(sent);
            b.qp->on_packet(sent.whole());
        }
        for (const SentPacket& sent : from_b) {
            seen.push_back(sent);
            a.qp->on_packet(sent.whole());
        }
        a.mover().end_turn();
        b.mover().end_turn();
    }
}

}  // namespace uib::transport::testing
