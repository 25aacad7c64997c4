#include "net/link/error_watch.h"

namespace uib::net::link {

bool LocalLinkIntegrity::on_packet(bool local_physical_error, std::uint32_t threshold) {
    if (!local_physical_error) {
        if (count_ > 0) --count_;
        return false;
    }
    if (++count_ <= threshold) return false;
    count_ = 0;
    return true;
}

bool BufferOverruns::on_overrun(Time now, std::uint32_t threshold) {
    const Time period = now / period_;
    if (run_ != 0 && period == last_) return false;
    run_ = run_ != 0 && period == last_ + 1 ? run_ + 1 : 1;
    last_ = period;
    if (run_ <= threshold) return false;
    run_ = 0;
    return true;
}

}  // namespace uib::net::link
