#include "net/link/vl_arbiter.h"

#include <algorithm>

namespace uib::net::link {
namespace {

constexpr std::int64_t kWordsPerWeight = 16;
constexpr std::int64_t kWordsPerLimit = 1024;
constexpr std::uint8_t kNoLimit = 255;

/// Entries of VLs that are not there have nothing ready, VL15 included.
std::uint32_t words_of(const ArbitrationEntry& entry, const ReadyWords& ready) {
    return entry.weight != 0 && entry.vl < ready.size() ? ready[entry.vl] : 0;
}

}  // namespace

void VlArbiter::set_tables(const ArbitrationTables& tables) {
    // Behind the last entry, so that the first turn begins with the first one.
    high_ = {.entries = tables.high, .index = std::max<std::size_t>(tables.high.size(), 1) - 1};
    low_ = {.entries = tables.low, .index = std::max<std::size_t>(tables.low.size(), 1) - 1};
    high_counter_ = limit_ * kWordsPerLimit;
}

void VlArbiter::set_limit(std::uint8_t limit) {
    limit_ = limit;
    high_counter_ = limit * kWordsPerLimit;
}

bool VlArbiter::Table::is_ready(const ReadyWords& ready) const {
    for (const ArbitrationEntry& entry : entries)
        if (words_of(entry, ready) != 0) return true;
    return false;
}

std::optional<std::uint8_t> VlArbiter::Table::pick(const ReadyWords& ready) {
    for (std::size_t step = 0; step <= entries.size() && !entries.empty(); ++step) {
        if (step != 0) {
            index = (index + 1) % entries.size();
            available = entries[index].weight * kWordsPerWeight;
        }
        const std::uint32_t words = words_of(entries[index], ready);
        if (available > 0 && words != 0) {
            available -= words;
            return entries[index].vl;
        }
    }
    return std::nullopt;
}

std::optional<std::uint8_t> VlArbiter::pick_high(const ReadyWords& ready) {
    const auto vl = high_.pick(ready);
    if (vl && limit_ != kNoLimit) high_counter_ -= ready[*vl];
    return vl;
}

std::optional<std::uint8_t> VlArbiter::next(const ReadyWords& ready) {
    if (high_counter_ >= 0 && high_.is_ready(ready)) return pick_high(ready);
    high_counter_ = limit_ * kWordsPerLimit;
    if (const auto vl = low_.pick(ready)) return vl;
    if (const auto vl = pick_high(ready)) return vl;
    for (std::size_t i = 0; i < ready.size(); ++i) {
        const std::size_t vl = (unlisted_ + i) % ready.size();
        if (ready[vl] == 0) continue;
        unlisted_ = vl + 1;
        return static_cast<std::uint8_t>(vl);
    }
    return std::nullopt;
}

}  // namespace uib::net::link
