#include "tests/simulation/adapter.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "tests/simulation/world.h"

namespace uib::simulation {

using transport::Completion;
using transport::QueuePair;
using transport::Status;

namespace {

constexpr std::uint32_t kXrcDomain = 1;

Qp& qp_of(QueuePair& machine) {
    return *static_cast<Qp*>(machine.config().owner);
}

}  // namespace

void SendList::fetch(std::uint32_t index, transport::SendRequest& out) {
    const Entry& entry = entries.at(index - base);
    out = entry.request;
    out.inline_data = entry.inline_data;
}

void ReceiveList::post(Pieces pieces) {
    Buffer& buffer = buffers.emplace_back();
    for (const Piece& piece : pieces) buffer.length += piece.length;
    buffer.pieces = std::move(pieces);
    if (inline_areas_) buffer.inline_area.assign(ipc::kAutoInlineBytes, std::byte{0xEE});
}

bool ReceiveList::take(transport::ReceiveRequest& out) {
    if (taken_ == buffers.size()) return false;
    Buffer& buffer = buffers[taken_];
    buffer.state = State::kTaken;
    out.wr_id = out.slot = taken_++;
    out.malformed = false;
    out.length = buffer.length;
    out.sge_count = static_cast<std::uint32_t>(buffer.pieces.size());
    for (std::size_t i = 0; i < buffer.pieces.size(); ++i)
        out.sge[i] = {Adapter::kBase + buffer.pieces[i].at, buffer.pieces[i].length, adapter_.key()};
    out.inline_area = buffer.inline_area;
    return true;
}

ReceiveList& receives_of(Qp& qp, const Completion& completion) {
    if (completion.xrc_srq == 0) return *qp.receives;
    for (ReceiveList& list : qp.adapter->receive_lists)
        if (list.number == completion.xrc_srq) return list;
    return *qp.receives;
}

void Qp::start() {
    for (const auto state : {transport::QpState::kInit, transport::QpState::kRtr, transport::QpState::kRts})
        machine->apply(state, parameters, false);
}

Adapter::Adapter(World& world, net::Lid lid, std::size_t memory_bytes, bool lend)
    : world_(world), lid_(lid), space_(std::make_shared<memory::BufferSpace>(memory_bytes, kBase, lend)) {
    for (std::size_t i = 0; i + 8 <= memory_bytes; i += 8) {
        const std::uint64_t noise = world.random.next();
        std::memcpy(at(i), &noise, sizeof noise);
    }
    initial.assign(space_->bytes().begin(), space_->bytes().end());
    memory::RegionInit init;
    init.pd = kPd;
    init.access = ipc::kAccessLocalWrite | ipc::kAccessRemoteWrite | ipc::kAccessRemoteRead |
                  ipc::kAccessRemoteAtomic | ipc::kAccessBindWindow;
    init.iova = kBase;
    init.length = memory_bytes;
    init.space = space_;
    init.space_address = kBase;
    region_ = keys_.add_region(std::move(init));
}

Qp* Adapter::add_qp(transport::Service service, std::uint32_t number, ReceiveList* receives) {
    Qp& qp = qps.emplace_back();
    qp.adapter = this;
    qp.receives = receives;
    transport::QpConfig config;
    config.number = number;
    config.service = service;
    config.pd = kPd;
    config.max_send_wr = 4096;
    config.xrc_domain = kXrcDomain;
    config.send_queue = service == transport::Service::kXrcTarget ? nullptr : &qp.sends;
    config.receive_queue = receives;
    config.owner = &qp;
    if (world_.random.chance(0.5)) qp.sends.base = 0U - world_.random.draw32(0, 20);
    qp.machine = QueuePair::make(config, *this);
    if (qp.machine == nullptr) {
        qps.pop_back();
        return nullptr;
    }
    qp.parameters.path.slid = lid_;
    return &qp;
}

ReceiveList* Adapter::add_receives(bool shared, bool inline_areas) {
    return &receive_lists.emplace_back(*this, shared, inline_areas);
}

ReceiveList* Adapter::add_xrc_receives(std::uint32_t number, bool inline_areas) {
    ReceiveList* list = add_receives(true, inline_areas);
    list->number = number;
    xrc_queues_.push_back({list, kPd, 0, number});
    return list;
}

memory::Window* Adapter::add_window() {
    windows_.push_back(keys_.add_window(kPd, memory::WindowType::kType2));
    return windows_.back();
}

transport::Time Adapter::now() const {
    return world_.now();
}

void Adapter::send(const net::Packet& packet) {
    world_.carry(*this, packet);
}

bool Adapter::complete_send(QueuePair& machine, const Completion& completion) {
    Qp& qp = qp_of(machine);
    world_.note_completion(Happening::kSendDone, qp, completion);
    world_.watcher->sent(qp, completion);
    return true;
}

bool Adapter::complete_receive(QueuePair& machine, const Completion& completion) {
    Qp& qp = qp_of(machine);
    world_.note_completion(Happening::kReceiveDone, qp, completion);
    if ((completion.flags & ipc::kCqeInline) != 0) place_inline(qp, completion);
    world_.watcher->received(qp, completion);
    return true;
}

// What poll_cq does with a payload that came in the receive slot.
void Adapter::place_inline(Qp& qp, const Completion& completion) {
    ReceiveList::Buffer& buffer = receives_of(qp, completion).buffers.at(completion.wqe_index);
    std::uint32_t done = 0;
    for (const Piece& piece : buffer.pieces) {
        const std::uint32_t part = std::min(piece.length, completion.byte_len - done);
        std::memcpy(at(piece.at), buffer.inline_area.data() + done, part);
        done += part;
    }
}

void Adapter::raise(QueuePair& machine, transport::QpEvent event) {
    Qp& qp = qp_of(machine);
    qp.events.push_back(event);
    world_.note_state(Happening::kEvent, qp, static_cast<std::uint64_t>(event));
}

const transport::XrcReceiveQueue* Adapter::xrc_receive_queue(std::uint32_t number, std::uint32_t domain) {
    const auto found = std::find_if(xrc_queues_.begin(), xrc_queues_.end(),
                                    [&](const auto& queue) { return queue.number == number; });
    return domain == kXrcDomain && found != xrc_queues_.end() ? &*found : nullptr;
}

Status Adapter::bind_window(QueuePair& machine, const transport::SendRequest& request) {
    if (request.window_handle >= windows_.size()) return Status::kWindowBind;
    memory::BindRequest bind;
    bind.pd = kPd;
    bind.qp_number = machine.config().number;
    bind.region_key = static_cast<std::uint32_t>(request.swap);
    bind.new_key = request.rkey;
    bind.address = request.remote_address;
    bind.length = request.compare_add;
    bind.access = static_cast<std::uint32_t>(request.swap >> 32);
    const bool bound = keys_.bind(windows_[request.window_handle], bind) == memory::AccessError::kNone;
    return bound ? Status::kSuccess : Status::kWindowBind;
}

void Adapter::deliver(const net::Packet& packet) {
    for (Qp& qp : qps) {
        const bool addressed =
            packet.bth.dest_qp == net::kMulticastQp ? qp.in_group : packet.bth.dest_qp == qp.number();
        if (!addressed) continue;
        qp.machine->on_packet(packet);
        mover_.end_turn();
    }
}

Pieces Adapter::allocate(Random& random, std::uint32_t length, std::uint32_t most) {
    Pieces pieces;
    const std::uint64_t count = random.draw(length == 0 ? 0 : 1, most);
    for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint32_t part = i + 1 == count ? length : random.draw32(0, length);
        pieces.push_back({next_, part});
        next_ += part + random.draw(1, 24);
        length -= part;
    }
    if (next_ > initial.size()) throw std::length_error("a simulated client overran its memory");
    if (random.chance(0.3)) std::reverse(pieces.begin(), pieces.end());
    return pieces;
}

std::uint64_t Adapter::allocate_word() {
    next_ = (next_ + 7) / 8 * 8 + 8;
    return next_ - 8;
}

std::vector<std::byte> Adapter::bytes(const Pieces& pieces) const {
    std::vector<std::byte> out;
    for (const Piece& piece : pieces) out.insert(out.end(), at(piece.at), at(piece.at) + piece.length);
    return out;
}

}  // namespace uib::simulation
