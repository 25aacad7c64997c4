#include "engine/management/link_trap.h"

#include <algorithm>

#include "net/wire/bytes.h"

namespace uib::management {
namespace {

constexpr std::byte kGenericUrgent{0x81};
constexpr std::byte kProducerIsSwitch{2};
constexpr std::uint16_t kLinkStateChange = 128;
// Places in the notice.
constexpr std::size_t kProducerAt = 3;
constexpr std::size_t kTrapAt = 4;
constexpr std::size_t kIssuerAt = 6;
constexpr std::size_t kSwitchLidAt = 10;
constexpr Time kSubnetTimeoutUnit = 4096;  // ns
constexpr Number kLongestTimeout = 20;
/// GUIDs differ in the low bits.
constexpr unsigned kTransactionShift = 40;

}  // namespace

LinkTrap::LinkTrap(SmpNode& node)
    : node_(node), transaction_(node.node().info.node_guid << kTransactionShift) {
    node_.on_trap_repress([this](std::uint64_t transaction) { on_repress(transaction); });
}

Time LinkTrap::interval() const {
    return kSubnetTimeoutUnit << std::min(node_.node().port(0).info.subnet_timeout, kLongestTimeout);
}

void LinkTrap::raise(Time now) {
    news_ = true;
    if (attempts_ == 0) due_ = std::max(now, next_allowed_);
    on_timer(now);
}

void LinkTrap::on_timer(Time now) {
    if (due_ > now) return;
    due_ = kNever;
    if (news_) {
        ++transaction_;
        attempts_ = 0;
        news_ = false;
    }
    const PortInfo& own = node_.node().port(0).info;
    // Without a master there is nobody to tell; the one that comes looks at everything.
    if (own.master_sm_lid == 0 || own.lid == 0 || attempts_ == kAttempts) {
        attempts_ = 0;
        return;
    }
    ++attempts_;
    due_ = next_allowed_ = now + interval();
    send(now);
}

void LinkTrap::send(Time now) {
    const PortInfo& own = node_.node().port(0).info;
    SmpPacket packet;
    packet.slid = static_cast<net::Lid>(own.lid);
    packet.dlid = static_cast<net::Lid>(own.master_sm_lid);
    packet.smp.header.management_class = net::kClassSubnLidRouted;
    packet.smp.header.method = net::MadMethod::kTrap;
    packet.smp.header.attribute_id = static_cast<std::uint16_t>(AttributeId::kNotice);
    packet.smp.header.transaction_id = transaction_;
    Data notice = packet.smp.data;
    notice[0] = kGenericUrgent;
    notice[kProducerAt] = kProducerIsSwitch;
    net::store_be<2>(&notice[kTrapAt], kLinkStateChange);
    net::store_be<2>(&notice[kIssuerAt], packet.slid);
    net::store_be<2>(&notice[kSwitchLidAt], packet.slid);
    ++sent_;
    node_.originate(0, packet, now);
}

void LinkTrap::on_repress(std::uint64_t transaction) {
    if (attempts_ == 0 || transaction != transaction_) return;
    attempts_ = 0;
    due_ = news_ ? next_allowed_ : kNever;
}

}  // namespace uib::management
