// Credits of one data VL (7.9.4): absolute block counts modulo 4096, so that a lost packet of either kind is
// made good by the next flow control packet.
//
// The sender owns FCTBS and CL, the receiver ABR. The receiver promises FCCL = ABR + what its buffer takes
// whatever the sizes of the packets; the sender starts a packet only if all of it is covered. A lost data
// packet leaves ABR behind until the next FCTBS; a lost flow control packet only delays.
#pragma once

#include <algorithm>
#include <cstdint>

namespace uib::net::link {

inline constexpr std::uint32_t kCreditModulus = 4096;
/// A port never promises more blocks than this beyond ABR.
inline constexpr std::uint32_t kMaxCredit = 2048;

constexpr std::uint16_t credit_sum(std::uint32_t count, std::uint32_t blocks) {
    return static_cast<std::uint16_t>((count + blocks) % kCreditModulus);
}
/// Blocks from `behind` to `ahead`, modulo 4096.
constexpr std::uint32_t credit_distance(std::uint32_t ahead, std::uint32_t behind) {
    return (ahead - behind) % kCreditModulus;
}

class SendCredits {
  public:
    /// C7-64. A packet is never larger than the modulus.
    [[nodiscard]] bool covers(std::uint32_t blocks) const {
        return credit_distance(limit_, credit_sum(sent_, blocks)) <= kMaxCredit;
    }
    void on_sent(std::uint32_t blocks) { sent_ = credit_sum(sent_, blocks); }
    void on_limit(std::uint16_t fccl) { limit_ = fccl; }
    [[nodiscard]] std::uint16_t sent() const { return sent_; }    ///< FCTBS
    [[nodiscard]] std::uint16_t limit() const { return limit_; }  ///< CL

  private:
    std::uint16_t sent_ = 0;
    std::uint16_t limit_ = 0;
};

class ReceiveCredits {
  public:
    void on_received(std::uint32_t blocks) { received_ = credit_sum(received_, blocks); }
    void on_sender_count(std::uint16_t fctbs) { received_ = fctbs; }
    /// FCCL of a buffer with `free_blocks` (C7-63).
    [[nodiscard]] std::uint16_t limit(std::uint32_t free_blocks) const {
        return credit_sum(received_, std::min(free_blocks, kMaxCredit));
    }
    /// What a flow control packet has just promised.
    void on_promised(std::uint16_t fccl) { promised_ = fccl; }
    /// Blocks by which the limit has risen since then.
    [[nodiscard]] std::uint32_t unpromised(std::uint32_t free_blocks) const {
        const std::uint32_t gain = credit_distance(limit(free_blocks), promised_);
        return gain <= kMaxCredit ? gain : 0;
    }
    /// Blocks that the peer may still send by what it was promised.
    [[nodiscard]] std::uint32_t left() const {
        const std::uint32_t left = credit_distance(promised_, received_);
        return left <= kMaxCredit ? left : 0;
    }
    [[nodiscard]] std::uint16_t received() const { return received_; }  ///< ABR

  private:
    std::uint16_t received_ = 0;
    std::uint16_t promised_ = 0;
};

}  // namespace uib::net::link
