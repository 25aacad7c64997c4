// The one source of chance of a simulated world: xoshiro256** from a seed, alike on every machine.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace uib::simulation {

class Random {
  public:
    explicit Random(std::uint64_t seed) {
        for (std::uint64_t& word : state_) {  // splitmix64
            seed += 0x9E3779B97F4A7C15ULL;
            std::uint64_t mixed = seed;
            mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9ULL;
            mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBULL;
            word = mixed ^ (mixed >> 31);
        }
    }

    std::uint64_t next() {
        const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
        const std::uint64_t shifted = state_[1] << 17;
        state_[2] ^= state_[0];
        state_[3] ^= state_[1];
        state_[1] ^= state_[2];
        state_[0] ^= state_[3];
        state_[2] ^= shifted;
        state_[3] = std::rotl(state_[3], 45);
        return result;
    }
    /// In [low, high], nearly uniform.
    std::uint64_t draw(std::uint64_t low, std::uint64_t high) {
        const std::uint64_t span = high - low + 1;
        return span == 0 ? next() : low + next() % span;
    }
    std::uint32_t draw32(std::uint64_t low, std::uint64_t high) {
        return static_cast<std::uint32_t>(draw(low, high));
    }
    bool chance(double probability) { return static_cast<double>(next() >> 11) * 0x1.0p-53 < probability; }
    template <typename Container>
    const auto& pick(const Container& from) {
        return from[draw(0, std::size(from) - 1)];
    }

  private:
    std::array<std::uint64_t, 4> state_;
};

}  // namespace uib::simulation
