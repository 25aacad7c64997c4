// The space of null regions: reads give zeros, writes vanish, every address exists.
#pragma once

#include <cstring>

#include "engine/memory/address_space.h"

namespace uib::memory {

class NullSpace final : public AddressSpace {
  public:
    std::byte* direct(std::uint64_t /*address*/, std::uint64_t /*length*/) override { return nullptr; }

    bool read(std::span<const RemoteRange> from, std::byte* to) override {
        for (const RemoteRange& range : from) {
            if (range.length != 0) std::memset(to, 0, range.length);
            to += range.length;
        }
        return true;
    }

    bool write(std::span<const RemoteRange> /*to*/, std::span<const ConstBytes> /*from*/) override {
        return true;
    }
};

}  // namespace uib::memory
