#include "engine/verbs/rx_hash.h"

#include <algorithm>
#include <cerrno>

#include "engine/verbs/qp.h"

namespace uib::verbs {

namespace {

constexpr std::uint32_t kIpv4Fields = ipc::kHashSourceIpv4 | ipc::kHashDestinationIpv4;
constexpr std::uint32_t kIpv6Fields = ipc::kHashSourceIpv6 | ipc::kHashDestinationIpv6;
constexpr std::uint32_t kTcpFields = ipc::kHashSourceTcpPort | ipc::kHashDestinationTcpPort;
constexpr std::uint32_t kUdpFields = ipc::kHashSourceUdpPort | ipc::kHashDestinationUdpPort;
constexpr std::size_t kIpv4AddressBytes = 4;
constexpr std::size_t kWindowBytes = 4;
constexpr std::uint8_t kMoreFragments = 4;  // of FlowFields::ip_flags

/// The hash's input; two IPv6 addresses and two ports fit.
class Input {
  public:
    void append(std::span<const std::uint8_t> bytes) {
        std::copy(bytes.begin(), bytes.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(size_));
        size_ += bytes.size();
    }
    [[nodiscard]] std::span<const std::uint8_t> view() const { return std::span(bytes_).first(size_); }

  private:
    std::array<std::uint8_t, ipc::kHashKeyBytes - kWindowBytes> bytes_{};
    std::size_t size_ = 0;
};

}  // namespace

std::uint32_t toeplitz(const HashKey& key, std::span<const std::uint8_t> input) {
    std::uint32_t window = 0, result = 0;
    for (std::size_t i = 0; i < kWindowBytes; ++i) window = window << 8 | key[i];
    for (std::size_t i = 0; i < input.size(); ++i) {
        for (unsigned bit = 8; bit-- > 0;) {
            if ((input[i] >> bit & 1U) != 0) result ^= window;
            window = window << 1 | (key[i + kWindowBytes] >> bit & 1U);
        }
    }
    return result;
}

int check_hash_fields(std::uint32_t fields) {
    if ((fields & ~ipc::kAllHashFields) != 0) return EOPNOTSUPP;
    if ((fields & kIpv4Fields) != 0 && (fields & kIpv6Fields) != 0) return EINVAL;
    return (fields & kTcpFields) != 0 && (fields & kUdpFields) != 0 ? EINVAL : 0;
}

RwqTable::RwqTable(const Client& owner, std::vector<Qp*> queues) : owner_(owner), queues_(std::move(queues)) {
    for (Qp* queue : queues_) ++queue->rwq_entries;
}

RwqTable::~RwqTable() {
    for (Qp* queue : queues_) --queue->rwq_entries;
}

std::uint32_t RxHash::hash(const FrameHeaders& headers) const {
    const ipc::FlowFields& from = headers.fields;
    Input input;
    const auto append = [&](std::uint32_t field, std::uint32_t layer, std::span<const std::uint8_t> bytes) {
        if ((fields & field) != 0 && (headers.layers & layer) != 0) input.append(bytes);
    };
    append(ipc::kHashSourceIpv4, ipc::kFlowIpv4, std::span(from.source_ip).first(kIpv4AddressBytes));
    append(ipc::kHashDestinationIpv4, ipc::kFlowIpv4,
           std::span(from.destination_ip).first(kIpv4AddressBytes));
    append(ipc::kHashSourceIpv6, ipc::kFlowIpv6, from.source_ip);
    append(ipc::kHashDestinationIpv6, ipc::kFlowIpv6, from.destination_ip);
    if ((from.ip_flags & kMoreFragments) == 0) {
        append(ipc::kHashSourceTcpPort, ipc::kFlowTcp, from.source_port);
        append(ipc::kHashDestinationTcpPort, ipc::kFlowTcp, from.destination_port);
        append(ipc::kHashSourceUdpPort, ipc::kFlowUdp, from.source_port);
        append(ipc::kHashDestinationUdpPort, ipc::kFlowUdp, from.destination_port);
    }
    return toeplitz(key, input.view());
}

}  // namespace uib::verbs
