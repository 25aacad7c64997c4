// Flow steering of one Ethernet port: which queue pairs a frame goes to (ibv_create_flow).
//
// For each frame, in this order:
//   1. every sniffer gets a copy;
//   2. normal rules are tried by priority (lowest value first), within a priority in order of creation. The
//      first that matches takes the frame; rules of the same priority that ask for exactly the same get a
//      copy too (a multicast address that several programs receive). A rule with kFlowDontTrap gets a copy
//      and the search goes on;
//   3. what no normal rule took goes to all rules ALL_DEFAULT, and to all MC_DEFAULT if it is multicast.
// A queue pair gets a frame once, however many of its rules say so. The port has no address filter of its
// own: the rules are the filter.
//
// A table belongs to its device; rules belong to contexts and are linked here while they live. Matching
// allocates nothing once `out` has grown.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/ipc/control.h"
#include "engine/ipc/control_flow.h"

namespace uib::verbs {

class Qp;
struct RxHash;

struct FlowRule {
    Qp* qp = nullptr;
    ipc::FlowType type = ipc::FlowType::kNormal;
    std::uint32_t priority = 0;
    std::uint32_t flags = 0;   ///< ipc::FlowFlags
    std::uint32_t layers = 0;  ///< ipc::FlowLayers
    ipc::FlowFields value{};
    ipc::FlowFields mask{};
    const RxHash* hash = nullptr;  ///< of a QP that spreads its frames over work queues
};

/// A frame's headers as far as rules can ask for them.
struct FrameHeaders {
    std::uint32_t layers = 0;  ///< ipc::FlowLayers
    ipc::FlowFields fields{};
};

/// Takes a frame's headers apart: Ethernet, one VLAN tag, IPv4 or IPv6, TCP or UDP ports (not behind IPv6
/// extension headers, nor in later fragments). Headers that are cut short are not there.
FrameHeaders parse_frame(std::span<const std::byte> frame);

/// 0, or EINVAL where the rule contradicts itself or has a value out of range.
int check_flow(const ipc::CreateFlowRequest& request);

class FlowTable {
  public:
    void add(const FlowRule& rule);
    void remove(const FlowRule& rule);
    [[nodiscard]] std::size_t size() const { return rules_.size(); }

    /// The queue pairs and work queues that get `frame`, in `out` (emptied before).
    void match(std::span<const std::byte> frame, std::vector<Qp*>& out) const;

  private:
    bool match_normal(const FrameHeaders& headers, std::vector<Qp*>& out) const;

    /// By type (sniffers last, so that normal rules come first), then priority, then order of creation.
    std::vector<const FlowRule*> rules_;
};

}  // namespace uib::verbs
