// A space that copies, counts its calls and can be told to fail at an address: a stand-in for another
// process.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "engine/memory/buffer_space.h"

namespace uib::memory {

class CountingSpace final : public AddressSpace {
  public:
    explicit CountingSpace(std::size_t size = 8192) : buffer_(size, 0, false) {}

    std::byte* direct(std::uint64_t /*address*/, std::uint64_t /*length*/) override { return nullptr; }

    bool read(std::span<const RemoteRange> from, std::byte* to) override {
        ++reads;
        read_ranges = from.size();
        return !touches_bad(from) && buffer_.read(from, to);
    }
    bool write(std::span<const RemoteRange> to, std::span<const ConstBytes> from) override {
        ++writes;
        write_ranges = to.size();
        write_sources = from.size();
        if (on_write) on_write();
        return !touches_bad(to) && buffer_.write(to, from);
    }
    [[nodiscard]] const void* identity() const override { return alias_of != nullptr ? alias_of : this; }

    [[nodiscard]] std::string text(std::size_t at, std::size_t length) {
        return {reinterpret_cast<const char*>(buffer_.bytes().data()) + at, length};
    }
    void put(std::size_t at, const std::string& text) {
        std::memcpy(buffer_.bytes().data() + at, text.data(), text.size());
    }

    int reads = 0;
    int writes = 0;
    std::size_t read_ranges = 0;
    std::size_t write_ranges = 0;
    std::size_t write_sources = 0;
    std::uint64_t bad_address = ~std::uint64_t{0};
    const void* alias_of = nullptr;
    std::function<void()> on_write;

  private:
    [[nodiscard]] bool touches_bad(std::span<const RemoteRange> ranges) const {
        for (const RemoteRange& range : ranges) {
            if (bad_address - range.address < range.length) return true;
        }
        return false;
    }
    BufferSpace buffer_;
};

}  // namespace uib::memory
