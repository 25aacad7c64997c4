// Owners for libibverbs objects and the steps that every verbs program repeats: open a device, make a QP,
// connect it.
//
// For the programs under examples/ and tests/: works over any provider. The owners are unique_ptrs; declare
// them in the order in which the objects depend on one another. What fails throws Error with the call's name
// and errno. No threads, no state.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

namespace uib::kit {

struct Error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Throws Error: "what: text of `number`".
[[noreturn]] void fail(const std::string& what, int number);

/// Throws if `result`, an errno as most verbs return it, is not 0.
inline void check(int result, const char* what) {
    if (result != 0) fail(what, result);
}

template <auto Destroy>
struct Closer {
    template <typename T>
    void operator()(T* object) const {
        Destroy(object);
    }
};
using Context = std::unique_ptr<ibv_context, Closer<ibv_close_device>>;
using ProtectionDomain = std::unique_ptr<ibv_pd, Closer<ibv_dealloc_pd>>;
using Channel = std::unique_ptr<ibv_comp_channel, Closer<ibv_destroy_comp_channel>>;
using CompletionQueue = std::unique_ptr<ibv_cq, Closer<ibv_destroy_cq>>;
using Region = std::unique_ptr<ibv_mr, Closer<ibv_dereg_mr>>;
using Window = std::unique_ptr<ibv_mw, Closer<ibv_dealloc_mw>>;
using QueuePair = std::unique_ptr<ibv_qp, Closer<ibv_destroy_qp>>;
using AddressHandle = std::unique_ptr<ibv_ah, Closer<ibv_destroy_ah>>;

/// Opens the device of that name; the first one for an empty name.
Context open_device(const std::string& name);

ProtectionDomain make_pd(ibv_context& context);
Channel make_channel(ibv_context& context);
CompletionQueue make_cq(ibv_context& context, int entries, ibv_comp_channel* channel = nullptr);
Region register_memory(ibv_pd& pd, void* address, std::size_t bytes, int access);

inline constexpr int kAllAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
inline constexpr std::uint32_t kDatagramKey = 0x11111111;

/// Where a QP is reached. Plain bytes, to be sent to the peer.
struct Address {
    std::uint32_t qp_number;
    std::uint32_t psn;
    std::uint16_t lid;
    std::uint16_t reserved;
    std::uint32_t global;  ///< 1: by GID (the port has no LID)
    std::uint8_t gid[16];
};

struct QueueSizes {
    std::uint32_t send_requests = 64;
    std::uint32_t receive_requests = 64;
    std::uint32_t send_pieces = 1;
    std::uint32_t receive_pieces = 1;
    std::uint32_t inline_bytes = 0;
};

/// A QP whose send and receive completions go to `cq`, in state RESET.
QueuePair make_qp(ibv_pd& pd, ibv_cq& cq, ibv_qp_type type, const QueueSizes& sizes);

/// This QP's address on port 1.
Address address_of(ibv_qp& qp, std::uint32_t psn);

/// RESET to RTS towards the peer (UD: only the own PSN and the Q_Key count). `path_mtu` 0: the port's active
/// MTU.
void connect_qp(ibv_qp& qp, const Address& own, const Address& peer, int access, int path_mtu = 0);

/// An address handle for datagrams to the peer.
AddressHandle make_ah(ibv_pd& pd, const Address& peer);

/// Bytes of one MTU of port 1.
std::uint32_t mtu_bytes(ibv_context& context);

}  // namespace uib::kit
