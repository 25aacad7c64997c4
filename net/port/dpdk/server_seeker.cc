#include "net/port/dpdk/server_seeker.h"

#include <pthread.h>
#include <rte_log.h>

#include <chrono>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "net/port/dpdk/eal.h"

namespace uib::net::dpdk {

namespace {

constexpr std::chrono::milliseconds kPatience{1000};

/// Drivers say at each attempt that nobody serves their socket. We look again and again.
class QuietLog {
  public:
    QuietLog() : before_(::rte_log_get_global_level()) { ::rte_log_set_global_level(RTE_LOG_CRIT); }
    ~QuietLog() { ::rte_log_set_global_level(before_); }
    QuietLog(const QuietLog&) = delete;
    QuietLog& operator=(const QuietLog&) = delete;

  private:
    std::uint32_t before_;
};

}  // namespace

ServerSeeker::~ServerSeeker() {
    wait();
}

void ServerSeeker::wait() const {
    if (busy()) result_.wait_for(kPatience);
}

ServerSeeker::Device ServerSeeker::attempt(const FramePortOptions& options, std::uint32_t mtu, Device old) {
    const DevicesTurn turn(kPatience);
    const QuietLog quiet;
    if (old != nullptr && !old->started()) {
        old->start();
        return old;
    }
    old.reset();
    try {
        auto made = std::make_unique<DpdkDevice>(
            device_arguments(options, DpdkDevice::next_number(), mtu, {}), options.driver);
        made->start();
        return made;
    } catch (const std::runtime_error&) {
        return nullptr;
    }
}

void ServerSeeker::begin(Device old) {
    std::packaged_task<Device()> task([options = options_, mtu = mtu_, old = std::move(old)]() mutable {
        pthread_setname_np(pthread_self(), "uib-seeker");
        return attempt(options, mtu, std::move(old));
    });
    result_ = task.get_future();
    try {
        std::thread(std::move(task)).detach();
    } catch (const std::system_error&) {
        result_ = {};  // no thread to be had now; there is another try
    }
}

bool ServerSeeker::take(Device& found) {
    if (!busy() || result_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return false;
    found = result_.get();
    return true;
}

}  // namespace uib::net::dpdk
