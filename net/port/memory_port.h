// Frame ports whose other end is the program itself: for tests of what stands on ports, without drivers or
// privilege.
#pragma once

#include <deque>
#include <vector>

#include "net/port/frame_port.h"

namespace uib::net {

/// What is sent is queued in `sent`; what is put into `arriving` is received. Public on purpose: the test is
/// the wire.
class MemoryPort final : public FramePort {
  public:
    using Frame = std::vector<std::byte>;

    explicit MemoryPort(const MacAddress& mac, std::uint32_t mtu = 4200) : mac_(mac), mtu_(mtu) {}

    [[nodiscard]] MacAddress mac() const override { return mac_; }
    [[nodiscard]] std::uint32_t mtu() const override { return mtu_; }
    [[nodiscard]] bool link_up() override { return up; }
    std::span<const std::span<const std::byte>> receive() override {
        views_.clear();
        while (!arriving.empty()) {
            held_.push_back(std::move(arriving.front()));
            arriving.pop_front();
            views_.emplace_back(held_.back());
            ++counters_.rx_frames;
        }
        return views_;
    }
    void release() override { held_.clear(); }
    std::span<std::byte> allocate(std::size_t bytes) override {
        if (queued_.size() >= depth) {
            ++counters_.tx_no_buffer;
            return {};
        }
        writing_.assign(bytes, std::byte{0});
        return writing_;
    }
    void commit() override {
        ++counters_.tx_frames;
        queued_.push_back(std::move(writing_));
    }
    void flush() override {
        if (stuck) return;
        for (Frame& frame : queued_) sent.push_back(std::move(frame));
        queued_.clear();
    }
    [[nodiscard]] bool unsent() const override { return !queued_.empty(); }
    [[nodiscard]] std::uint32_t room() const override {
        return static_cast<std::uint32_t>(depth - queued_.size());
    }
    [[nodiscard]] int wake_descriptor() const override { return -1; }
    void watch(bool) override {}
    const FramePortCounters& counters() override { return counters_; }

    std::deque<Frame> sent;
    std::deque<Frame> arriving;
    std::size_t depth = 64;
    bool up = true;
    bool stuck = false;  ///< takes no frame that is flushed

  private:
    MacAddress mac_;
    std::uint32_t mtu_;
    Frame writing_;
    std::vector<Frame> queued_;
    std::deque<Frame> held_;
    std::vector<std::span<const std::byte>> views_;
    FramePortCounters counters_;
};

}  // namespace uib::net
