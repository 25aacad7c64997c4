// Datagrams in (IBA 9.6 checks, 9.8.3.2, classes A, D and E of 9.9.3). What cannot be taken is dropped and
// counted; its receive request, if one was taken, serves the next datagram.
#include <array>

#include "engine/transport/ud_queue_pair.h"
#include "net/wire/gid.h"
#include "net/wire/ipv4.h"
#include "net/wire/length.h"

namespace uib::transport {

using net::Operation;

namespace {

constexpr std::uint32_t kSubnetQp = 0;
constexpr std::uint32_t kGeneralQp = 1;
constexpr std::uint32_t kGeneralQkey = 0x80010000;  // C9-49
constexpr std::size_t kUdpBytes = 8;

/// What the receiver finds in front of the data: the GRH, or, where the network header was IPv4, that header
/// in the last 20 of the 40 bytes (Annex A17.4.5.2, as libibverbs reads it).
std::array<std::byte, net::kGrhBytes> network_header(const net::Packet& packet) {
    if (!net::is_ipv4(packet.grh.dgid)) return net::encode_grh(packet.grh, packet.payload.size());
    std::array<std::byte, net::kGrhBytes> header{};
    net::build_ipv4(packet.grh, kUdpBytes + net::transport_bytes(packet) + net::kIcrcBytes,
                    std::span(header).last<net::kIpv4Bytes>());
    return header;
}

}  // namespace

void UdQueuePair::on_packet(const net::Packet& packet) {
    count_arrival(packet);
    if (!accept_datagram(packet)) return;
    note_arrival();
    on_send(packet);
}

bool UdQueuePair::accept_datagram(const net::Packet& packet) {
    if (packet.bth.service() != net::Service::kUd) {
        ++counters_.dropped_service;
        return false;
    }
    if (!accept_in_state() || !accept_destination(packet) || !accept_keys(packet)) return false;
    const Operation operation = packet.bth.operation();
    if (operation != Operation::kSendOnly && operation != Operation::kSendOnlyImmediate) {
        ++counters_.invalid_requests;
        return false;
    }
    if (packet.payload.size() > mtu()) {
        ++counters_.dropped_length;
        return false;
    }
    return true;
}

// Neither LIDs nor GIDs are checked but for what makes a packet multicast (C9-43.1.1, C9-46, C9-53, C9-58),
// and that the permissive LID reaches QP0 only (C9-55).
bool UdQueuePair::accept_destination(const net::Packet& packet) {
    if (packet.bth.dest_qp == net::kMulticastQp) {
        if (packet.has_grh && net::is_multicast(packet.grh.dgid)) return true;
        ++counters_.dropped_multicast;
        return false;
    }
    if (packet.lrh.dlid != net::kPermissiveLid || number() == kSubnetQp) return true;
    ++counters_.dropped_lid;
    return false;
}

bool UdQueuePair::accept_keys(const net::Packet& packet) {
    if (number() == kSubnetQp) return true;
    if (!(number() == kGeneralQp ? accept_port_pkey(packet) : accept_pkey(packet))) return false;
    if (packet.deth.qkey == (number() == kGeneralQp ? kGeneralQkey : parameters_.qkey)) return true;
    ++counters_.dropped_qkey;
    return false;
}

void UdQueuePair::on_send(const net::Packet& packet) {
    if (!take_for_datagram()) return;
    std::array<std::byte, net::kGrhBytes> grh;
    if (packet.has_grh) grh = network_header(packet);
    const std::span<const std::byte> front =
        packet.has_grh ? std::span<const std::byte>(grh) : std::span<const std::byte>();
    switch (receive().put_datagram(front, packet.payload)) {
        case ReceiveMessage::Put::kDone:
            complete(packet);
            break;
        case ReceiveMessage::Put::kProtection:
            receive_fault(Status::kLocalProtection);
            break;
        case ReceiveMessage::Put::kTooLong:
            ++counters_.dropped_length;
            if (receive_queue()->shared()) {
                receive().fail(Status::kLocalLength);
            } else {
                receive().reuse();
            }
            break;
    }
}

void UdQueuePair::complete(const net::Packet& packet) {
    if (!flush_writes()) {
        receive_fault(Status::kLocalProtection);
        return;
    }
    Completion completion;
    if (packet.bth.solicited) completion.flags |= ipc::kCqeSolicited;
    if (packet.has_grh) completion.flags |= ipc::kCqeGrh;
    if (packet.bth.operation() == Operation::kSendOnlyImmediate) {
        completion.flags |= ipc::kCqeImmediate;
        completion.immediate = packet.immediate;
    }
    completion.source_qp = packet.deth.source_qp;
    completion.slid = packet.lrh.slid;
    completion.sl = packet.lrh.sl;
    if (packet.lrh.dlid < net::kMulticastLidFirst)
        completion.dlid_path_bits =
            static_cast<std::uint8_t>((packet.lrh.dlid - parameters_.path.slid) & 0x7F);
    receive().complete(completion);
}

}  // namespace uib::transport
