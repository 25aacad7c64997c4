// What an adapter's memory must hold in the end: the initial noise, changed by the messages that were
// executed.
#pragma once

#include <cstring>
#include <map>
#include <span>

#include "tests/simulation/adapter.h"

namespace uib::simulation {

class Image {
  public:
    explicit Image(const Adapter& adapter) : adapter_(adapter), expected_(adapter.initial) {}

    void put(const Piece& piece, const std::byte* from) {
        if (piece.length != 0) std::memcpy(expected_.data() + piece.at, from, piece.length);
    }
    void put(const Pieces& pieces, std::span<const std::byte> content) {
        for (const Piece& piece : pieces) {
            const auto part = static_cast<std::uint32_t>(std::min<std::size_t>(piece.length, content.size()));
            put(Piece{piece.at, part}, content.data());
            content = content.subspan(part);
        }
    }
    /// Nothing is said about these bytes: they count as they are.
    void leave_open(const Piece& piece) { put(piece, adapter_.at(piece.at)); }
    void leave_open(const Pieces& pieces) {
        for (const Piece& piece : pieces) leave_open(piece);
    }
    /// The first byte that is not as it must be; the memory's size if there is none.
    [[nodiscard]] std::size_t first_difference() const {
        if (std::memcmp(expected_.data(), adapter_.at(0), expected_.size()) == 0) return expected_.size();
        std::size_t i = 0;
        while (expected_[i] == *adapter_.at(i)) ++i;
        return i;
    }

  private:
    const Adapter& adapter_;
    std::vector<std::byte> expected_;
};

using Images = std::map<const Adapter*, Image>;

}  // namespace uib::simulation
