#include "net/link/vl_arbiter.h"

#include <algorithm>
#include <iterator>

namespace uib::net::link {
namespace {

constexpr std::int64_t kWordsPerWeight = 16;
constexpr std::int64_t kWordsPerLimit = 1024;
constexpr std::uint8_t kNoLimit = 255;

}  // namespace

VlArbiter::Table::Table(const std::vector<ArbitrationEntry>& list) {
    std::copy_if(list.begin(), list.end(), std::back_inserter(entries),
                 [](const ArbitrationEntry& entry) { return entry.weight != 0 && entry.vl < kDataVlsMax; });
    // The first turn steps to the first entry.
    index = entries.empty() ? 0 : entries.size() - 1;
}

void VlArbiter::set_tables(const ArbitrationTables& tables) {
    high_ = Table(tables.high);
    low_ = Table(tables.low);
    high_counter_ = limit_ * kWordsPerLimit;
}

void VlArbiter::set_limit(std::uint8_t limit) {
    limit_ = limit;
    high_counter_ = limit * kWordsPerLimit;
}

bool VlArbiter::Table::is_ready(const ReadyWords& ready) const {
    for (const ArbitrationEntry& entry : entries)
        if (ready[entry.vl] != 0) return true;
    return false;
}

std::optional<std::uint8_t> VlArbiter::Table::pick(const ReadyWords& ready) {
    for (std::size_t step = 0; step <= entries.size() && !entries.empty(); ++step) {
        if (step != 0) {
            index = (index + 1) % entries.size();
            available = entries[index].weight * kWordsPerWeight;
        }
        const std::uint32_t words = ready[entries[index].vl];
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
