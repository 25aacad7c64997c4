// Why a reliable responder refuses a request (IBA Table 61): the NAK that tells the requester, the status of
// the receive request in use or the event where there is none, and the counter of the check that failed.
#pragma once

#include <cstdint>

#include "engine/transport/aeth.h"
#include "engine/transport/queue_pair.h"

namespace uib::transport {

struct Refusal {
    std::uint8_t syndrome;
    Status status;
    QpEvent event;
    std::uint64_t QpCounters::*counter;
};

// In the order of the checks (Figure 89).
inline constexpr Refusal kBadSequence = {kNakInvalidRequest, Status::kRemoteInvalidRequest,
                                         QpEvent::kRequestError, &QpCounters::opcode_sequence_errors};
inline constexpr Refusal kUnsupported = {kNakInvalidRequest, Status::kRemoteInvalidRequest,
                                         QpEvent::kRequestError, &QpCounters::unsupported_requests};
inline constexpr Refusal kBadPadding = {kNakInvalidRequest, Status::kRemoteInvalidRequest,
                                        QpEvent::kAccessError, &QpCounters::padding_errors};
inline constexpr Refusal kForeignSrq = {kNakInvalidRdRequest, Status::kRemoteInvalidRdRequest,
                                        QpEvent::kAccessError, &QpCounters::xrc_domain_errors};
inline constexpr Refusal kNoReadResources = {kNakInvalidRequest, Status::kRemoteInvalidRequest,
                                             QpEvent::kAccessError, &QpCounters::read_resource_errors};
inline constexpr Refusal kBadReceive = {kNakRemoteOperation, Status::kLocalQpOperation, QpEvent::kFatal,
                                        &QpCounters::local_errors};
inline constexpr Refusal kBadKey = {kNakRemoteAccess, Status::kLocalAccess, QpEvent::kAccessError,
                                    &QpCounters::remote_access_errors};
inline constexpr Refusal kBadLength = {kNakInvalidRequest, Status::kRemoteInvalidRequest,
                                       QpEvent::kAccessError, &QpCounters::request_length_errors};
inline constexpr Refusal kLongerThanReceive = {kNakInvalidRequest, Status::kLocalLength,
                                               QpEvent::kAccessError, &QpCounters::request_length_errors};
inline constexpr Refusal kMisaligned = {kNakInvalidRequest, Status::kRemoteInvalidRequest,
                                        QpEvent::kAccessError, &QpCounters::misaligned_atomics};
inline constexpr Refusal kReceiveBuffer = {kNakRemoteOperation, Status::kLocalProtection, QpEvent::kFatal,
                                           &QpCounters::local_errors};
inline constexpr Refusal kMemoryFailed = {kNakRemoteOperation, Status::kRemoteOperation, QpEvent::kFatal,
                                          &QpCounters::local_errors};

}  // namespace uib::transport
