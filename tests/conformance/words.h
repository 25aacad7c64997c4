// The words of packet scripts: one function a packet of Table 38, named as the table names it.
#pragma once

#include <cstdint>

#include "engine/transport/aeth.h"
#include "engine/transport/host.h"
#include "tests/conformance/frame.h"

namespace uib::conformance {

using Op = net::Operation;
using transport::Time;

constexpr Time us(std::uint64_t count) {
    return count * 1000;
}
constexpr Time ms(std::uint64_t count) {
    return count * 1'000'000;
}

inline Frame send_first(int psn) {
    return {Op::kSendFirst, psn, kMtu};
}
inline Frame send_middle(int psn) {
    return {Op::kSendMiddle, psn, kMtu};
}
inline Frame send_last(int psn, std::size_t bytes) {
    return {Op::kSendLast, psn, bytes};
}
inline Frame send_only(int psn, std::size_t bytes) {
    return {Op::kSendOnly, psn, bytes};
}
inline Frame send_last_imm(int psn, std::size_t bytes, std::uint32_t immediate) {
    return Frame(Op::kSendLastImmediate, psn, bytes).immediate(immediate);
}
inline Frame send_only_imm(int psn, std::size_t bytes, std::uint32_t immediate) {
    return Frame(Op::kSendOnlyImmediate, psn, bytes).immediate(immediate);
}
inline Frame send_last_inv(int psn, std::size_t bytes, std::uint32_t key) {
    return Frame(Op::kSendLastInvalidate, psn, bytes).invalidates(key);
}
inline Frame send_only_inv(int psn, std::size_t bytes, std::uint32_t key) {
    return Frame(Op::kSendOnlyInvalidate, psn, bytes).invalidates(key);
}

inline Frame write_first(int psn, std::uint32_t rkey, std::uint64_t address, std::uint32_t dma_length) {
    return Frame(Op::kWriteFirst, psn, kMtu).reth(address, rkey, dma_length);
}
inline Frame write_middle(int psn) {
    return {Op::kWriteMiddle, psn, kMtu};
}
inline Frame write_last(int psn, std::size_t bytes) {
    return {Op::kWriteLast, psn, bytes};
}
inline Frame write_last_imm(int psn, std::size_t bytes, std::uint32_t immediate) {
    return Frame(Op::kWriteLastImmediate, psn, bytes).immediate(immediate);
}
inline Frame write_only(int psn, std::uint32_t rkey, std::uint64_t address, std::uint32_t bytes) {
    return Frame(Op::kWriteOnly, psn, bytes).reth(address, rkey, bytes);
}
inline Frame write_only_imm(int psn, std::uint32_t rkey, std::uint64_t address, std::uint32_t bytes,
                            std::uint32_t immediate) {
    return Frame(Op::kWriteOnlyImmediate, psn, bytes).reth(address, rkey, bytes).immediate(immediate);
}

inline Frame read(int psn, std::uint32_t rkey, std::uint64_t address, std::uint32_t bytes) {
    return Frame(Op::kReadRequest, psn).reth(address, rkey, bytes);
}
inline Frame fetch_add(int psn, std::uint32_t rkey, std::uint64_t address, std::uint64_t add) {
    return Frame(Op::kFetchAdd, psn).atomic(address, rkey, add, 0);
}
inline Frame compare_swap(int psn, std::uint32_t rkey, std::uint64_t address, std::uint64_t compare,
                          std::uint64_t swap) {
    return Frame(Op::kCompareSwap, psn).atomic(address, rkey, swap, compare);
}
inline Frame atomic_write(int psn, std::uint32_t rkey, std::uint64_t address) {
    return Frame(Op::kAtomicWrite, psn, 8).reth(address, rkey, 8);
}

// Responses. As an expectation ack() and those of READs and atomics accept any credit code.
inline constexpr std::uint8_t kAnyCredits = 0xE0;  ///< mask of the syndrome without its low five bits

inline Frame ack(int psn) {
    return Frame(Op::kAcknowledge, psn).syndrome(0x1F, kAnyCredits);
}
inline Frame nak(std::uint8_t syndrome, int psn) {
    return Frame(Op::kAcknowledge, psn).syndrome(syndrome);
}
inline Frame rnr_nak(std::uint8_t timer, int psn) {
    return Frame(Op::kAcknowledge, psn).syndrome(static_cast<std::uint8_t>(transport::kRnrNak | timer));
}
inline Frame read_response(Op operation, int psn, std::size_t bytes) {
    return Frame(operation, psn, bytes).syndrome(0x1F, kAnyCredits);
}
inline Frame response_first(int psn) {
    return read_response(Op::kReadResponseFirst, psn, kMtu);
}
inline Frame response_middle(int psn) {
    return {Op::kReadResponseMiddle, psn, kMtu};
}
inline Frame response_last(int psn, std::size_t bytes) {
    return read_response(Op::kReadResponseLast, psn, bytes);
}
inline Frame response_only(int psn, std::size_t bytes) {
    return read_response(Op::kReadResponseOnly, psn, bytes);
}
inline Frame atomic_ack(int psn, std::uint64_t original) {
    return Frame(Op::kAtomicAcknowledge, psn).syndrome(0x1F, kAnyCredits).original(original);
}

}  // namespace uib::conformance
