#include "net/tap/pcapng.h"

#include <cstring>

namespace uib::net {
namespace {

constexpr std::uint32_t kSectionBlock = 0x0A0D0D0A;
constexpr std::uint32_t kInterfaceBlock = 1;
constexpr std::uint32_t kStatisticsBlock = 5;
constexpr std::uint32_t kPacketBlock = 6;
constexpr std::uint32_t kByteOrderMagic = 0x1A2B3C4D;
constexpr std::uint16_t kOptionEnd = 0;
constexpr std::uint16_t kSectionApplication = 4;
constexpr std::uint16_t kInterfaceName = 2;
constexpr std::uint16_t kInterfaceResolution = 9;
constexpr std::uint16_t kPacketFlags = 2;
constexpr std::uint16_t kStatisticsReceived = 4;
constexpr std::uint16_t kStatisticsDropped = 5;
constexpr std::uint8_t kNanoseconds = 9;  // 10^-9 s

/// A block under construction at the end of a buffer; its length is written when it ends.
class Block {
  public:
    Block(std::vector<std::byte>& out, std::uint32_t type) : out_(out), start_(out.size()) {
        put(type);
        put(std::uint32_t{0});
    }
    ~Block() {
        const auto length = static_cast<std::uint32_t>(out_.size() - start_ + sizeof(std::uint32_t));
        put(length);
        std::memcpy(out_.data() + start_ + sizeof(std::uint32_t), &length, sizeof length);
    }
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;

    template <typename T>
    void put(T value) {
        put_bytes(std::as_bytes(std::span(&value, 1)));
    }
    void put_bytes(std::span<const std::byte> bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }
    void pad() { out_.resize((out_.size() + 3) / 4 * 4); }
    void option(std::uint16_t code, std::span<const std::byte> value) {
        put(code);
        put(static_cast<std::uint16_t>(value.size()));
        put_bytes(value);
        pad();
    }
    template <typename T>
    void option_number(std::uint16_t code, T value) {
        option(code, std::as_bytes(std::span(&value, 1)));
    }
    void end_options() { put(std::uint32_t{kOptionEnd}); }
    void put_time(std::uint64_t time_ns) {
        put(static_cast<std::uint32_t>(time_ns >> 32));
        put(static_cast<std::uint32_t>(time_ns));
    }

  private:
    std::vector<std::byte>& out_;
    std::size_t start_;
};

std::span<const std::byte> text(std::string_view value) {
    return std::as_bytes(std::span(value.data(), value.size()));
}

}  // namespace

void append_section(std::vector<std::byte>& out, std::string_view application) {
    Block block(out, kSectionBlock);
    block.put(kByteOrderMagic);
    block.put(std::uint16_t{1});  // version 1.0
    block.put(std::uint16_t{0});
    block.put(~std::uint64_t{0});  // length not told
    block.option(kSectionApplication, text(application));
    block.end_options();
}

void write_erf_header(std::span<std::byte, kErfHeaderBytes> out, std::uint64_t time_ns, std::size_t kept,
                      std::size_t length) {
    constexpr std::uint64_t kSecond = 1'000'000'000;
    constexpr std::byte kInfiniBand{21};
    constexpr std::byte kVaryingLength{4};
    // Seconds and binary fraction, low byte first; the rest is high byte first.
    const std::uint64_t stamp = time_ns / kSecond << 32 | ((time_ns % kSecond) << 32) / kSecond;
    for (std::size_t i = 0; i < 8; ++i) out[i] = static_cast<std::byte>(stamp >> (8 * i));
    out[8] = kInfiniBand;
    out[9] = kVaryingLength;
    const std::size_t fields[] = {kErfHeaderBytes + kept, 0, length};  // the second counts losses
    for (std::size_t i = 0; i < 3; ++i) {
        out[10 + 2 * i] = static_cast<std::byte>(fields[i] >> 8);
        out[11 + 2 * i] = static_cast<std::byte>(fields[i]);
    }
}

void append_interface(std::vector<std::byte>& out, LinkType type, std::string_view name, std::uint32_t snap) {
    Block block(out, kInterfaceBlock);
    block.put(static_cast<std::uint16_t>(type));
    block.put(std::uint16_t{0});
    block.put(snap);
    block.option(kInterfaceName, text(name));
    block.option_number(kInterfaceResolution, kNanoseconds);
    block.end_options();
}

void append_packet(std::vector<std::byte>& out, std::uint32_t interface, std::uint64_t time_ns,
                   std::span<const std::byte> bytes, std::uint32_t length, CaptureDirection direction) {
    Block block(out, kPacketBlock);
    block.put(interface);
    block.put_time(time_ns);
    block.put(static_cast<std::uint32_t>(bytes.size()));
    block.put(length);
    block.put_bytes(bytes);
    block.pad();
    block.option_number(kPacketFlags, static_cast<std::uint32_t>(direction));
    block.end_options();
}

void append_statistics(std::vector<std::byte>& out, std::uint32_t interface, std::uint64_t time_ns,
                       std::uint64_t received, std::uint64_t dropped) {
    Block block(out, kStatisticsBlock);
    block.put(interface);
    block.put_time(time_ns);
    block.option_number(kStatisticsReceived, received);
    block.option_number(kStatisticsDropped, dropped);
    block.end_options();
}

}  // namespace uib::net
