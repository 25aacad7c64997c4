#include "engine/transport/payload.h"

#include <algorithm>

#include "engine/transport/machine.h"

namespace uib::transport {
namespace {

/// Slices of one gather, left uninitialised: each is written before it is read.
union SliceList {
    SliceList() {}
    memory::Slice at[kMaxSge];
};

/// Calls `visit(slice, bytes)` for each piece of [offset, offset + length) of the list, checking keys. False
/// on a fault.
template <typename Visit>
bool for_each_piece(Machine& machine, const SendRequest& request, std::uint64_t offset, std::uint64_t length,
                    bool write, Visit visit) {
    for (std::uint32_t entry = 0; length > 0; ++entry) {
        if (entry == request.sge_count) return false;
        const ipc::ScatterGatherEntry& at = request.sge[entry];
        if (offset >= at.length) {
            offset -= at.length;
            continue;
        }
        const std::uint64_t part = std::min<std::uint64_t>(length, at.length - offset);
        const memory::Checked checked =
            machine.keys().check_local(machine.pd(), at.lkey, at.address + offset, part, write);
        if (!checked.ok()) return false;
        visit(checked.slice, part);
        length -= part;
        offset = 0;
    }
    return true;
}

}  // namespace

std::uint32_t burst_bytes(Machine& machine, const SendRequest& request, std::uint32_t rest,
                          std::uint32_t packets) {
    const std::uint64_t most =
        std::min<std::uint64_t>(std::uint64_t{packets} << machine.mtu_shift(), kBurstBytes);
    auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(rest, most));
    if ((request.flags & ipc::kWorkInline) != 0) return bytes;
    const std::size_t room = machine.mover().room();
    if (bytes > room) bytes = static_cast<std::uint32_t>(room) & ~(machine.mtu() - 1);
    return bytes;
}

Status gather_payload(Machine& machine, const SendRequest& request, std::uint32_t offset,
                      std::uint32_t length, std::span<const std::byte>& view) {
    if (length == 0) {
        view = {};
        return Status::kSuccess;
    }
    if ((request.flags & ipc::kWorkInline) != 0) {
        view = request.inline_data.subspan(offset, length);
        return Status::kSuccess;
    }
    SliceList slices;
    std::size_t count = 0;
    if (!for_each_piece(machine, request, offset, length, false,
                        [&](const memory::Slice& slice, std::uint64_t) { slices.at[count++] = slice; })) {
        return Status::kLocalProtection;
    }
    const auto gathered = machine.mover().gather(std::span<const memory::Slice>(slices.at, count));
    if (!gathered) return Status::kLocalProtection;
    view = *gathered;
    return Status::kSuccess;
}

bool scatter_payload(Machine& machine, const SendRequest& request, std::uint32_t offset,
                     std::span<const std::byte> bytes) {
    return for_each_piece(machine, request, offset, bytes.size(), true,
                          [&](const memory::Slice& slice, std::uint64_t part) {
                              machine.mover().scatter(machine.number(), slice, bytes.first(part));
                              bytes = bytes.subspan(part);
                          });
}

bool check_targets(Machine& machine, const SendRequest& request, std::uint64_t length) {
    return for_each_piece(machine, request, 0, length, true, [](const memory::Slice&, std::uint64_t) {});
}

}  // namespace uib::transport
