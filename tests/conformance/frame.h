// A packet as a script says it: what the scripted peer sends, or what it expects to hear.
//
// PSNs are relative to the start PSN of their direction, so that scripts count from 0 while the wire wraps.
// As something to send, what is not set has the ordinary value (addresses of the connection, PadCnt that
// fits, no AckReq). As an expectation, opcode, PSN and payload length always count and the rest counts where
// it is set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "net/wire/packet.h"

namespace uib::conformance {

/// Every script goes through the wrap: its PSN 2 is the wire's 0.
inline constexpr std::uint32_t kStartPsn = 0xFFFFFE;
inline constexpr std::size_t kMtu = 256;

/// Number of the XRC SRQ that XRC scripts use unless they say another.
inline constexpr std::uint32_t kXrcSrq = 0x77;

/// Part of a packet that raw bits are counted from.
enum class Part : std::uint8_t { kLrh, kGrh, kBth, kExtension };

class Frame {
  public:
    Frame(net::Operation operation, int psn, std::size_t length = 0)
        : operation_(operation), psn_(psn), length_(length) {}

    Frame& asks_ack(bool value = true) { return put(ack_req_, value); }
    Frame& solicited(bool value = true) { return put(solicited_, value); }
    Frame& immediate(std::uint32_t value) { return put(immediate_, value); }
    Frame& invalidates(std::uint32_t key) { return put(invalidate_, key); }
    Frame& reth(std::uint64_t address, std::uint32_t rkey, std::uint32_t dma_length) {
        return put(reth_, net::Reth{address, rkey, dma_length});
    }
    Frame& atomic(std::uint64_t address, std::uint32_t rkey, std::uint64_t swap_add, std::uint64_t compare) {
        return put(atomic_, net::AtomicEth{address, rkey, swap_add, compare});
    }
    /// The AETH's syndrome; an expectation compares the bits of `mask`.
    Frame& syndrome(std::uint8_t value, std::uint8_t mask = 0xFF) {
        syndrome_mask_ = mask;
        return put(syndrome_, value);
    }
    Frame& credits(std::uint8_t code) { return syndrome(code); }
    Frame& msn(std::uint32_t value) { return put(msn_, value); }
    Frame& original(std::uint64_t value) { return put(original_, value); }
    Frame& pad(std::uint8_t value) { return put(pad_, value); }
    Frame& mig_req(bool value) { return put(mig_req_, value); }
    Frame& service(net::Service value) { return put(service_, value); }
    Frame& xrc_srq(std::uint32_t number) { return put(xrc_srq_, number); }
    Frame& deth(std::uint32_t qkey, std::uint32_t source_qp) {
        return put(deth_, net::Deth{qkey, source_qp});
    }
    /// Payload: bytes `from` and on of pattern `seed` (station.h).
    Frame& bytes(unsigned seed, std::size_t from = 0) {
        from_ = from;
        return put(seed_, seed);
    }
    Frame& length(std::size_t value) {
        length_ = value;
        return *this;
    }
    /// Sending: any header field, in host form, after everything else.
    Frame& with(const std::function<void(net::Packet&)>& change) {
        changes_.push_back(change);
        return *this;
    }
    /// Sending: bits of the encoded frame; the CRCs are not looked at then, as if they had been made to fit.
    Frame& bits(Part part, std::size_t byte, std::uint8_t value, std::uint8_t mask = 0xFF) {
        patches_.push_back({part, byte, value, mask});
        return *this;
    }

    struct Patch {
        Part part;
        std::size_t byte;
        std::uint8_t value;
        std::uint8_t mask;
    };

  private:
    friend class Wire;

    template <typename Field, typename Value>
    Frame& put(std::optional<Field>& field, Value value) {
        field = value;
        return *this;
    }

    net::Operation operation_;
    int psn_;
    std::size_t length_;
    std::size_t from_ = 0;
    std::uint8_t syndrome_mask_ = 0xFF;
    std::optional<unsigned> seed_;
    std::optional<bool> ack_req_;
    std::optional<bool> solicited_;
    std::optional<bool> mig_req_;
    std::optional<std::uint8_t> pad_;
    std::optional<std::uint8_t> syndrome_;
    std::optional<std::uint32_t> msn_;
    std::optional<std::uint32_t> immediate_;
    std::optional<std::uint32_t> invalidate_;
    std::optional<std::uint32_t> xrc_srq_;
    std::optional<std::uint64_t> original_;
    std::optional<net::Service> service_;
    std::optional<net::Reth> reth_;
    std::optional<net::AtomicEth> atomic_;
    std::optional<net::Deth> deth_;
    std::vector<std::function<void(net::Packet&)>> changes_;
    std::vector<Patch> patches_;
};

}  // namespace uib::conformance
