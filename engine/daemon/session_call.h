// How a session unpacks a request's body and packs its reply's: for the files that have its dispatch tables.
#pragma once

#include <cerrno>
#include <cstring>
#include <type_traits>

#include "engine/daemon/session.h"

namespace uib::daemon {

/// A request or reply without a body.
struct None {};
template <typename T>
constexpr std::size_t size_of() {
    return std::is_same_v<T, None> ? 0 : sizeof(T);
}

template <typename In, typename Out, typename F>
int Session::call(const Message& message, Reply& reply, F&& f) {
    if (message.length != sizeof(ipc::RequestHeader) + size_of<In>()) {
        malformed_ = true;
        return EINVAL;
    }
    In in{};
    if constexpr (!std::is_same_v<In, None>)
        std::memcpy(&in, message.bytes.data() + sizeof(ipc::RequestHeader), sizeof in);
    Out out{};
    const int status = f(in, out);
    if constexpr (!std::is_same_v<Out, None>)
        if (status == 0) append_bytes(reply.body, out);
    return status;
}

}  // namespace uib::daemon
