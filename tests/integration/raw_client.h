// A client that speaks the control protocol by hand, so that it can break every rule that the provider keeps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "engine/ipc/control.h"
#include "engine/ipc/doorbell.h"
#include "engine/ipc/ring.h"
#include "engine/ipc/unique_fd.h"

namespace uib::test {

using ipc::UniqueFd;

/// A refusal of the engine: its errno.
struct Refused : std::runtime_error {
    explicit Refused(int number);
    int number;
};
/// The engine closed the connection.
struct Closed : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A session with its chunks mapped. Chunks stay mapped until it dies. For one thread.
class RawClient {
  public:
    /// Connects and says hello for the device.
    RawClient(const std::string& socket_path, const std::string& device);
    ~RawClient();
    RawClient(const RawClient&) = delete;
    RawClient& operator=(const RawClient&) = delete;

    /// One request; returns the reply's body. Throws Refused or Closed.
    template <typename Reply, typename Request>
    Reply call(ipc::Operation operation, const Request& request, std::span<const int> descriptors = {}) {
        static_assert(std::is_trivially_copyable_v<Request> && std::is_trivially_copyable_v<Reply>);
        // An empty struct stands for a message without a body; its size is not 0.
        Reply reply{};
        std::span<const std::byte> body = std::as_bytes(std::span(&request, 1));
        std::span<std::byte> answer = std::as_writable_bytes(std::span(&reply, 1));
        if constexpr (std::is_empty_v<Request>) body = {};
        if constexpr (std::is_empty_v<Reply>) answer = {};
        exchange(operation, body, answer, descriptors);
        return reply;
    }

    std::byte* at(const ipc::Location& location) const {
        return chunks_.at(location.chunk).data() + location.offset;
    }
    std::span<const std::span<std::byte>> chunks() const { return chunks_; }
    ipc::DoorbellMap& doorbells() const { return *reinterpret_cast<ipc::DoorbellMap*>(at(doorbells_)); }
    void wake() const;                  ///< writes the wake-up eventfd
    [[nodiscard]] bool closes() const;  ///< the engine closes the session within 10 s

  private:
    void exchange(ipc::Operation operation, std::span<const std::byte> body, std::span<std::byte> reply,
                  std::span<const int> descriptors);
    void take_chunk(UniqueFd descriptor);

    UniqueFd socket_;
    UniqueFd events_read_, events_write_;
    UniqueFd helper_own_, helper_engine_;
    UniqueFd wake_;
    std::vector<std::span<std::byte>> chunks_;
    ipc::Location doorbells_{};
    std::uint32_t tag_ = 0;
    std::uint64_t probe_[2] = {0x1122334455667788ULL, 0};
    std::vector<UniqueFd> last_descriptors_;
};

}  // namespace uib::test
