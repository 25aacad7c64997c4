// What libxdp and libbpf, which driver af_xdp uses, print on the standard error stream by themselves: of what
// they tried before they did well, for the most part. It is kept for whom the driver fails.
#pragma once

#include <string>

namespace uib::net::dpdk {

/// While one lives, what the libraries print in this thread is kept in it; from the first one on they print
/// nothing. EAL, which loads the libraries, runs.
class XdpMessages {
  public:
    XdpMessages();
    ~XdpMessages();
    XdpMessages(const XdpMessages&) = delete;
    XdpMessages& operator=(const XdpMessages&) = delete;

    [[nodiscard]] const std::string& text() const { return text_; }

  private:
    std::string text_;
};

}  // namespace uib::net::dpdk
