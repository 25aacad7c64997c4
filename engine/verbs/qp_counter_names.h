// The names under which QpCounters are shown, and sums over them.
#pragma once

#include <array>
#include <cstdint>

#include "engine/transport/queue_pair.h"

namespace uib::verbs {

struct QpCounterName {
    const char* name;
    std::uint64_t transport::QpCounters::*member;
};

inline constexpr std::array kQpCounterNames = {
    QpCounterName{"packets_sent", &transport::QpCounters::packets_sent},
    QpCounterName{"packets_received", &transport::QpCounters::packets_received},
    QpCounterName{"bytes_sent", &transport::QpCounters::bytes_sent},
    QpCounterName{"bytes_received", &transport::QpCounters::bytes_received},
    QpCounterName{"duplicate_requests", &transport::QpCounters::duplicate_requests},
    QpCounterName{"out_of_sequence", &transport::QpCounters::out_of_sequence},
    QpCounterName{"sequence_naks_sent", &transport::QpCounters::sequence_naks_sent},
    QpCounterName{"rnr_naks_sent", &transport::QpCounters::rnr_naks_sent},
    QpCounterName{"rnr_naks_received", &transport::QpCounters::rnr_naks_received},
    QpCounterName{"naks_received", &transport::QpCounters::naks_received},
    QpCounterName{"implied_naks", &transport::QpCounters::implied_naks},
    QpCounterName{"timeouts", &transport::QpCounters::timeouts},
    QpCounterName{"retransmitted_packets", &transport::QpCounters::retransmitted_packets},
    QpCounterName{"ghost_responses", &transport::QpCounters::ghost_responses},
    QpCounterName{"dropped_state", &transport::QpCounters::dropped_state},
    QpCounterName{"dropped_service", &transport::QpCounters::dropped_service},
    QpCounterName{"dropped_pkey", &transport::QpCounters::dropped_pkey},
    QpCounterName{"dropped_qkey", &transport::QpCounters::dropped_qkey},
    QpCounterName{"dropped_address", &transport::QpCounters::dropped_address},
    QpCounterName{"dropped_no_receive", &transport::QpCounters::dropped_no_receive},
    QpCounterName{"dropped_length", &transport::QpCounters::dropped_length},
    QpCounterName{"dropped_sequence", &transport::QpCounters::dropped_sequence},
    QpCounterName{"dropped_access", &transport::QpCounters::dropped_access},
    QpCounterName{"remote_access_errors", &transport::QpCounters::remote_access_errors},
    QpCounterName{"invalid_requests", &transport::QpCounters::invalid_requests},
    QpCounterName{"remote_operation_errors", &transport::QpCounters::remote_operation_errors},
    QpCounterName{"local_errors", &transport::QpCounters::local_errors},
};
static_assert(sizeof(transport::QpCounters) == kQpCounterNames.size() * sizeof(std::uint64_t));

inline void add_counters(transport::QpCounters& to, const transport::QpCounters& from) {
    for (const QpCounterName& counter : kQpCounterNames) to.*counter.member += from.*counter.member;
}

}  // namespace uib::verbs
