#include "engine/transport/queue_pair.h"

#include "engine/transport/raw_queue_pair.h"
#include "engine/transport/rc_queue_pair.h"
#include "engine/transport/uc_queue_pair.h"
#include "engine/transport/ud_queue_pair.h"
#include "engine/transport/xrc_initiator.h"
#include "engine/transport/xrc_target.h"

namespace uib::transport {

std::unique_ptr<QueuePair> QueuePair::make(const QpConfig& config, Host& host) {
    switch (config.service) {
        case Service::kRc:
            return std::make_unique<RcQueuePair>(config, host);
        case Service::kUc:
            return std::make_unique<UcQueuePair>(config, host);
        case Service::kUd:
            return std::make_unique<UdQueuePair>(config, host);
        case Service::kXrcInitiator:
            return std::make_unique<XrcInitiator>(config, host);
        case Service::kXrcTarget:
            return std::make_unique<XrcTarget>(config, host);
        case Service::kRaw:
            return std::make_unique<RawQueuePair>(config, host);
    }
    return nullptr;
}

}  // namespace uib::transport
