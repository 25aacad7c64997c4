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
    QpCounterName{"duplicate_responses", &transport::QpCounters::duplicate_responses},
    QpCounterName{"unsolicited_credits", &transport::QpCounters::unsolicited_credits},
    QpCounterName{"reserved_syndromes", &transport::QpCounters::reserved_syndromes},
    QpCounterName{"bad_responses", &transport::QpCounters::bad_responses},
    QpCounterName{"path_migrations", &transport::QpCounters::path_migrations},
    QpCounterName{"path_migrations_refused", &transport::QpCounters::path_migrations_refused},
    QpCounterName{"rate_waits", &transport::QpCounters::rate_waits},
    QpCounterName{"dropped_state", &transport::QpCounters::dropped_state},
    QpCounterName{"dropped_service", &transport::QpCounters::dropped_service},
    QpCounterName{"dropped_pkey", &transport::QpCounters::dropped_pkey},
    QpCounterName{"dropped_qkey", &transport::QpCounters::dropped_qkey},
    QpCounterName{"dropped_grh", &transport::QpCounters::dropped_grh},
    QpCounterName{"dropped_gid", &transport::QpCounters::dropped_gid},
    QpCounterName{"dropped_lid", &transport::QpCounters::dropped_lid},
    QpCounterName{"dropped_multicast", &transport::QpCounters::dropped_multicast},
    QpCounterName{"dropped_no_receive", &transport::QpCounters::dropped_no_receive},
    QpCounterName{"dropped_length", &transport::QpCounters::dropped_length},
    QpCounterName{"dropped_sequence", &transport::QpCounters::dropped_sequence},
    QpCounterName{"dropped_access", &transport::QpCounters::dropped_access},
    QpCounterName{"remote_access_errors", &transport::QpCounters::remote_access_errors},
    QpCounterName{"invalid_requests", &transport::QpCounters::invalid_requests},
    QpCounterName{"remote_operation_errors", &transport::QpCounters::remote_operation_errors},
    QpCounterName{"local_errors", &transport::QpCounters::local_errors},
    QpCounterName{"opcode_sequence_errors", &transport::QpCounters::opcode_sequence_errors},
    QpCounterName{"unsupported_requests", &transport::QpCounters::unsupported_requests},
    QpCounterName{"padding_errors", &transport::QpCounters::padding_errors},
    QpCounterName{"read_resource_errors", &transport::QpCounters::read_resource_errors},
    QpCounterName{"request_length_errors", &transport::QpCounters::request_length_errors},
    QpCounterName{"misaligned_atomics", &transport::QpCounters::misaligned_atomics},
    QpCounterName{"xrc_domain_errors", &transport::QpCounters::xrc_domain_errors},
    QpCounterName{"remote_invalidate_errors", &transport::QpCounters::remote_invalidate_errors},
    QpCounterName{"dropped_duplicates", &transport::QpCounters::dropped_duplicates},
    QpCounterName{"unsolicited_acknowledges", &transport::QpCounters::unsolicited_acknowledges},
};
static_assert(sizeof(transport::QpCounters) == kQpCounterNames.size() * sizeof(std::uint64_t));

inline void add_counters(transport::QpCounters& to, const transport::QpCounters& from) {
    for (const QpCounterName& counter : kQpCounterNames) to.*counter.member += from.*counter.member;
}

}  // namespace uib::verbs
