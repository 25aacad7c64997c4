#include "engine/transport/path_migration.h"

#include <utility>

#include "engine/transport/machine.h"

namespace uib::transport {

PathMigration::Verdict PathMigration::request(const QpParameters& parameters) {
    if (!parameters.alternate_loaded) {
        reset();
        return Verdict::kStay;
    }
    if (!parameters.migration || *parameters.migration == state_) return Verdict::kStay;
    if (*parameters.migration == MigrationState::kMigrated) {
        if (state_ == MigrationState::kArmed) return Verdict::kMigrate;
        reset();
        return Verdict::kStay;
    }
    state_ = *parameters.migration;
    refused_ = false;
    return Verdict::kStay;
}

PathMigration::Verdict PathMigration::judge(bool mig_req, bool alternate) {
    if (state_ == MigrationState::kRearm) {
        if (!mig_req) state_ = MigrationState::kArmed;
        return Verdict::kStay;
    }
    if (!mig_req) return Verdict::kStay;
    if (alternate) return Verdict::kMigrate;
    if (refused_) return Verdict::kStay;
    refused_ = true;
    return Verdict::kRefuse;
}

void PathMigration::swap(QpParameters& parameters) {
    std::swap(parameters.path, parameters.alternate);
    std::swap(parameters.pkey, parameters.alternate_pkey);
    std::swap(parameters.timeout, parameters.alternate_timeout);
    parameters.alternate_loaded = false;
    reset();
    ++swaps_;
}

bool Machine::migrate() {
    if (migration_.state() != MigrationState::kArmed) return false;
    migration_.swap(parameters_);
    ++counters_.path_migrations;
    raise(QpEvent::kPathMigrated);
    set_rate_limit(parameters_.path.static_rate);
    refresh();
    return true;
}

void Machine::note_mig_req(const net::Packet& packet) {
    const bool alternate = path_fault(packet, parameters_.alternate, parameters_.alternate_pkey) == nullptr;
    switch (migration_.judge(packet.bth.mig_req, alternate)) {
        case PathMigration::Verdict::kStay:
            break;
        case PathMigration::Verdict::kMigrate:
            migrate();
            break;
        case PathMigration::Verdict::kRefuse:
            ++counters_.path_migrations_refused;
            raise(QpEvent::kPathMigrationFailed);
            break;
    }
}

}  // namespace uib::transport
