// What the tests have in the engine's place: a listening control socket that answers kHello and kStatus and
// remembers what else it was sent, and a device to publish.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/daemon/device_tree/device_tree.h"

namespace uib::test {

class FakeEngine {
  public:
    /// `status` is what kStatus answers with.
    explicit FakeEngine(const std::string& socket, std::string status = "{}");
    ~FakeEngine();
    FakeEngine(const FakeEngine&) = delete;
    FakeEngine& operator=(const FakeEngine&) = delete;

    /// Abstract names (without the zero) of the peers that have connected.
    std::vector<std::string> peers() const;
    /// Messages that are no request of the protocol.
    int strays() const { return strays_; }

  private:
    void serve();
    void accept_peer();
    bool answer(int connection);

    const std::string socket_;
    const std::string status_;
    int listener_ = -1;
    int stop_pipe_[2] = {-1, -1};
    std::vector<int> connections_;
    mutable std::mutex mutex_;
    std::vector<std::string> peers_;
    std::atomic<int> strays_{0};
    std::thread thread_;
};

/// A device with one active port and two GIDs.
daemon::TreeDevice sample_device(const std::string& name, unsigned index = 0);

/// A directory under /tmp that goes with the object.
class TemporaryDirectory {
  public:
    TemporaryDirectory();
    ~TemporaryDirectory();
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
    std::string operator/(const std::string& name) const { return path_ + "/" + name; }
    const std::string& path() const { return path_; }

  private:
    std::string path_ = "/tmp/uib-test-XXXXXX";
};

std::string file_text(const std::string& path);

}  // namespace uib::test
