#include "examples/uib_verify/pattern.h"

#include <algorithm>
#include <cstring>

namespace uib::verify {

namespace {

/// Calls f(position in the data, pattern bytes, count) for each stretch of up to 8 bytes of one pattern word.
template <typename F>
void for_each_word(std::size_t bytes, std::uint64_t seed, std::uint64_t offset, F&& f) {
    std::size_t done = 0;
    while (done < bytes) {
        const std::uint64_t position = offset + done;
        const std::uint64_t word = pattern_word(seed, position / 8);
        const std::size_t skip = position % 8;
        const std::size_t count = std::min<std::size_t>(8 - skip, bytes - done);
        std::byte raw[8];
        std::memcpy(raw, &word, sizeof raw);
        if (!f(done, raw + skip, count)) return;
        done += count;
    }
}

}  // namespace

void fill_pattern(std::span<std::byte> target, std::uint64_t seed, std::uint64_t offset) {
    for_each_word(target.size(), seed, offset, [&](std::size_t at, const std::byte* raw, std::size_t count) {
        std::memcpy(target.data() + at, raw, count);
        return true;
    });
}

std::optional<std::size_t> find_difference(std::span<const std::byte> data, std::uint64_t seed,
                                           std::uint64_t offset) {
    std::optional<std::size_t> found;
    for_each_word(data.size(), seed, offset, [&](std::size_t at, const std::byte* raw, std::size_t count) {
        if (std::memcmp(data.data() + at, raw, count) == 0) return true;
        std::size_t i = 0;
        while (data[at + i] == raw[i]) ++i;
        found = at + i;
        return false;
    });
    return found;
}

void Checksum::add(std::span<const std::byte> data) {
    total_ += data.size();
    std::size_t i = 0;
    while (i < data.size()) {
        if (pending_bytes_ == 0 && data.size() - i >= 8) {
            std::uint64_t word = 0;
            std::memcpy(&word, data.data() + i, sizeof word);
            add_word(word);
            i += 8;
            continue;
        }
        pending_ |= std::to_integer<std::uint64_t>(data[i++]) << (8 * pending_bytes_);
        if (++pending_bytes_ == 8) {
            add_word(pending_);
            pending_ = 0;
            pending_bytes_ = 0;
        }
    }
}

std::uint64_t Checksum::value() const {
    Checksum end = *this;
    end.add_word(pending_);
    end.add_word(total_);
    return end.hash_;
}

}  // namespace uib::verify
