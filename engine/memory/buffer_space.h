// A plain buffer of this process as an address space, for tests and the simulation.
#pragma once

#include <cstring>
#include <vector>

#include "engine/memory/address_space.h"

namespace uib::memory {

class BufferSpace final : public AddressSpace {
  public:
    /// `base` is the address of the first byte. With `lend` false all accesses copy, as with another
    /// process's memory.
    explicit BufferSpace(std::size_t size, std::uint64_t base = 0, bool lend = true)
        : bytes_(size), base_(base), lend_(lend) {}

    [[nodiscard]] std::span<std::byte> bytes() { return bytes_; }

    std::byte* direct(std::uint64_t address, std::uint64_t length) override {
        return lend_ ? place(address, length) : nullptr;
    }

    bool read(std::span<const RemoteRange> from, std::byte* to) override {
        for (const RemoteRange& range : from) {
            const std::byte* const at = place(range.address, range.length);
            if (at == nullptr) return false;
            if (range.length != 0) std::memcpy(to, at, range.length);
            to += range.length;
        }
        return true;
    }

    bool write(std::span<const RemoteRange> to, std::span<const ConstBytes> from) override {
        std::vector<std::byte> stream;
        for (const ConstBytes& run : from) stream.insert(stream.end(), run.data, run.data + run.length);
        std::size_t done = 0;
        for (const RemoteRange& range : to) {
            std::byte* const at = place(range.address, range.length);
            if (at == nullptr || range.length > stream.size() - done) return false;
            if (range.length != 0) std::memcpy(at, stream.data() + done, range.length);
            done += range.length;
        }
        return true;
    }

  private:
    std::byte* place(std::uint64_t address, std::uint64_t length) {
        const std::uint64_t offset = address - base_;
        if (offset > bytes_.size() || length > bytes_.size() - offset) return nullptr;
        return bytes_.data() + offset;
    }

    std::vector<std::byte> bytes_;
    std::uint64_t base_;
    bool lend_;
};

}  // namespace uib::memory
