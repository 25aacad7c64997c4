#include "tests/conformance/wire.h"

#include <algorithm>
#include <sstream>

namespace uib::conformance {

using net::Operation;
using transport::testing::pattern;

namespace {

constexpr std::size_t kLrhBytes = 8;
constexpr std::size_t kBthBytes = 12;

std::size_t offset_of(Part part, bool has_grh) {
    const std::size_t bth = kLrhBytes + (has_grh ? net::kGrhBytes : 0);
    switch (part) {
        case Part::kLrh:
            return 0;
        case Part::kGrh:
            return kLrhBytes;
        case Part::kBth:
            return bth;
        case Part::kExtension:
            return bth + kBthBytes;
    }
    return 0;
}

bool has_aeth(Operation operation) {
    return net::is_response(operation) && operation != Operation::kReadResponseMiddle;
}

std::uint8_t fitting_pad(std::size_t length) {
    return static_cast<std::uint8_t>((4 - length % 4) % 4);
}

/// Collects the differences of fields as "name: want, got".
class Comparison {
  public:
    template <typename Value>
    void field(const char* name, const Value& want, const Value& got) {
        if (want == got) return;
        text_ << ' ' << name << ": expected 0x" << std::hex << std::uint64_t{want} << ", got 0x"
              << std::uint64_t{got} << std::dec << ';';
    }
    template <typename Value>
    void field(const char* name, const std::optional<Value>& want, const Value& got) {
        if (want) field(name, *want, got);
    }
    void note(const std::string& what) { text_ << ' ' << what << ';'; }
    [[nodiscard]] std::string text() const { return text_.str(); }

  private:
    std::ostringstream text_;
};

}  // namespace

net::Service wire_service(transport::Service service) {
    switch (service) {
        case transport::Service::kUc:
            return net::Service::kUc;
        case transport::Service::kUd:
            return net::Service::kUd;
        case transport::Service::kXrcInitiator:
        case transport::Service::kXrcTarget:
            return net::Service::kXrc;
        default:
            return net::Service::kRc;
    }
}

std::uint8_t Carried::byte(Part part, std::size_t offset) const {
    return std::to_integer<std::uint8_t>(frame->at(offset_of(part, packet.has_grh) + offset));
}

int Wire::relative(std::uint32_t psn) {
    const std::uint32_t distance = (psn - kStartPsn) & 0xFFFFFF;
    return distance < 0x800000 ? static_cast<int>(distance) : static_cast<int>(distance) - 0x1000000;
}

net::Packet Wire::headers(const Frame& frame) const {
    const transport::QpParameters& parameters = machine_.parameters;
    net::Packet packet;
    const net::Service service = frame.service_.value_or(wire_service(machine_.qp->config().service));
    packet.lrh.dlid = parameters.path.slid;
    packet.lrh.slid = parameters.path.dlid;
    packet.lrh.sl = parameters.path.sl;
    packet.has_grh = parameters.path.global;
    packet.grh = parameters.path.grh;
    std::swap(packet.grh.sgid, packet.grh.dgid);
    packet.bth.opcode = net::opcode(service, frame.operation_);
    packet.bth.psn = psn(frame.psn_);
    packet.bth.dest_qp = machine_.qp->config().number;
    packet.bth.pkey = parameters.pkey;
    packet.bth.ack_req = frame.ack_req_.value_or(false);
    packet.bth.solicited = frame.solicited_.value_or(false);
    packet.bth.mig_req = frame.mig_req_.value_or(true);
    packet.bth.pad = frame.pad_.value_or(fitting_pad(frame.length_));
    packet.deth = frame.deth_.value_or(net::Deth{parameters.qkey, parameters.dest_qp});
    if (frame.reth_) packet.reth = *frame.reth_;
    if (frame.atomic_) packet.atomic = *frame.atomic_;
    packet.aeth = {frame.syndrome_.value_or(0), frame.msn_.value_or(0)};
    packet.atomic_original = frame.original_.value_or(0);
    packet.immediate = frame.immediate_.value_or(0);
    packet.invalidate_key = frame.invalidate_.value_or(0);
    packet.xrc_srq = frame.xrc_srq_.value_or(kXrcSrq);
    return packet;
}

Carried Wire::carry(const Frame& frame) const {
    net::Packet packet = headers(frame);
    std::vector<std::byte> payload(frame.length_);
    for (std::size_t i = 0; i < payload.size(); ++i)
        payload[i] = pattern(frame.seed_.value_or(1), frame.from_ + i);
    packet.payload = payload;
    for (const auto& change : frame.changes_) change(packet);
    Carried carried;
    carried.frame = std::make_unique<std::vector<std::byte>>(net::encoded_bytes(packet));
    carried.frame->resize(net::encode(packet, *carried.frame));
    for (const Frame::Patch& patch : frame.patches_) {
        std::byte& at = carried.frame->at(offset_of(patch.part, packet.has_grh) + patch.byte);
        at = (at & ~std::byte{patch.mask}) | (std::byte{patch.value} & std::byte{patch.mask});
    }
    const bool intact = frame.patches_.empty();
    carried.error = net::decode(*carried.frame, carried.packet, {intact, intact});
    return carried;
}

Carried Wire::carry(const net::Packet& packet) {
    Carried carried;
    carried.frame = std::make_unique<std::vector<std::byte>>(net::encoded_bytes(packet));
    carried.frame->resize(net::encode(packet, *carried.frame));
    carried.error = net::decode(*carried.frame, carried.packet);
    return carried;
}

std::string Wire::difference(const Frame& want, const Carried& got) {
    const net::Packet& packet = got.packet;
    Comparison compare;
    compare.field("operation", std::uint8_t(want.operation_), std::uint8_t(packet.bth.operation()));
    if (want.service_)
        compare.field("service", std::uint8_t(*want.service_), std::uint8_t(packet.bth.service()));
    compare.field("PSN", psn(want.psn_), packet.bth.psn);
    compare.field("payload length", want.length_, packet.payload.size());
    compare.field("AckReq", want.ack_req_, packet.bth.ack_req);
    compare.field("SE", want.solicited_, packet.bth.solicited);
    compare.field("MigReq", want.mig_req_, packet.bth.mig_req);
    compare.field("PadCnt", want.pad_, packet.bth.pad);
    if (want.syndrome_)
        compare.field("syndrome", std::uint8_t(*want.syndrome_ & want.syndrome_mask_),
                      std::uint8_t(packet.aeth.syndrome & want.syndrome_mask_));
    compare.field("MSN", want.msn_, packet.aeth.msn);
    compare.field("immediate", want.immediate_, packet.immediate);
    compare.field("invalidated key", want.invalidate_, packet.invalidate_key);
    compare.field("XRC SRQ", want.xrc_srq_, packet.xrc_srq);
    compare.field("original", want.original_, packet.atomic_original);
    if (want.deth_) {
        compare.field("Q_Key", want.deth_->qkey, packet.deth.qkey);
        compare.field("SrcQP", want.deth_->source_qp, packet.deth.source_qp);
    }
    if (want.reth_) {
        compare.field("RETH address", want.reth_->address, packet.reth.address);
        compare.field("RETH R_Key", want.reth_->rkey, packet.reth.rkey);
        compare.field("RETH DMALen", want.reth_->dma_length, packet.reth.dma_length);
    }
    if (want.atomic_) {
        compare.field("AtomicETH address", want.atomic_->address, packet.atomic.address);
        compare.field("AtomicETH R_Key", want.atomic_->rkey, packet.atomic.rkey);
        compare.field("AtomicETH swap or add", want.atomic_->swap_add, packet.atomic.swap_add);
        compare.field("AtomicETH compare", want.atomic_->compare, packet.atomic.compare);
    }
    if (want.seed_) {
        std::size_t index = want.from_;
        const bool same = std::all_of(packet.payload.begin(), packet.payload.end(),
                                      [&](std::byte byte) { return byte == pattern(*want.seed_, index++); });
        if (!same) compare.note("payload is not what was expected");
    }
    return compare.text();
}

std::string Wire::violation(const Carried& got) {
    Comparison compare;
    if (got.error != net::DecodeError::kNone) {
        compare.note(std::string("cannot be decoded: ") + net::name_of(got.error));
        return compare.text();
    }
    const net::Packet& packet = got.packet;
    const auto masked = [&](Part part, std::size_t byte, std::uint8_t mask) {
        return std::uint8_t(got.byte(part, byte) & mask);
    };
    const std::uint8_t none = 0;
    compare.field("TVer", none, masked(Part::kBth, 1, 0x0F));
    compare.field("F, B, Resv6", none, masked(Part::kBth, 4, 0xFF));
    compare.field("Resv7", none, masked(Part::kBth, 8, 0x7F));
    compare.field("PadCnt", fitting_pad(packet.payload.size()),
                  std::uint8_t(masked(Part::kBth, 1, 0x30) >> 4));
    const bool request = !net::is_response(packet.bth.operation());
    if (packet.bth.service() == net::Service::kUd)
        compare.field("DETH reserved", none, masked(Part::kExtension, 4, 0xFF));
    if (packet.bth.service() == net::Service::kXrc && request)
        compare.field("XRCETH reserved", none, masked(Part::kExtension, 0, 0xFF));
    if (has_aeth(packet.bth.operation()))
        compare.field("AETH bit 7", none, masked(Part::kExtension, 0, 0x80));
    return compare.text();
}

std::string Wire::text(const Carried& carried) {
    std::ostringstream out;
    out << net::describe(carried.packet) << " (PSN " << relative(carried.packet.bth.psn) << " of the script, "
        << carried.packet.payload.size() << " bytes)";
    if (carried.error != net::DecodeError::kNone) out << ", dropped: " << net::name_of(carried.error);
    return out.str();
}

}  // namespace uib::conformance
