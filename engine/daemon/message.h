// One packet of a control socket with its descriptors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/ipc/control.h"
#include "engine/ipc/unique_fd.h"

namespace uib::daemon {

/// A request as it came in.
struct Message {
    std::array<std::byte, ipc::kMaxMessageBytes> bytes;
    std::size_t length = 0;
    std::vector<ipc::UniqueFd> fds;

    /// The descriptor at `index`, taken out; invalid if there is none.
    ipc::UniqueFd take_fd(std::size_t index) {
        return index < fds.size() ? std::move(fds[index]) : ipc::UniqueFd();
    }
};

/// Appends a plain value's bytes.
template <typename T>
void append_bytes(std::vector<std::byte>& to, const T& value) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    to.insert(to.end(), bytes, bytes + sizeof value);
}

enum class Received { kMessage, kNothing, kClosed, kBroken };

/// Does not block. kBroken: too long, too many descriptors, or an error of the socket; `why` then says so.
Received receive(int socket, Message& message, std::string& why);

/// Does not block. False when the peer does not take it.
bool send(int socket, std::span<const std::byte> bytes, std::span<const int> fds);

}  // namespace uib::daemon
