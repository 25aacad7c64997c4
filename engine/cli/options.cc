// The options of the commands that have classes of their own. They are in one file because CLI11 costs each
// file that uses it some ten seconds of compilation.
#include <CLI/CLI.hpp>
#include <string>

#include "engine/cli/capture.h"
#include "engine/cli/check_config.h"
#include "engine/cli/fault.h"

namespace uib::cli {

CaptureCommand::CaptureCommand(CLI::App& app)
    : app_(app.add_subcommand("capture",
                              "Write the packets at a running engine's ports as pcapng, for Wireshark")) {
    app_->add_option("-w", file_, "File; - for standard output")->required()->option_text("FILE");
    app_->add_option("--device", device_, "At this device's port only")->option_text("NAME");
    app_->add_option("--qp", qp_, "Packets to and from this queue pair only")->option_text("NUMBER");
    app_->add_option("--snaplen", snap_bytes_, "Keep so many bytes of each packet")->option_text("BYTES");
    app_->add_option("--count", count_, "End after so many packets")->option_text("N");
}

bool CaptureCommand::chosen() const {
    return app_->parsed();
}

FaultCommand::FaultCommand(CLI::App& app)
    : app_(app.add_subcommand("fault", "Make faults at the ports of a running engine")),
      add_(app_->add_subcommand("add", "Add a rule; prints its identifier")),
      list_(app_->add_subcommand("list", "Show the rules and what they have done")),
      remove_(app_->add_subcommand("remove", "Remove a rule, or all")) {
    app_->require_subcommand(1);
    define_add();
    list_->add_flag("--json", as_json_, "As JSON");
    remove_->add_option("ID", which_, "Identifier of the rule, or all")->required();
}

void FaultCommand::define_add() {
    add_->add_option(
            "ACTION", rule_.action,
            "drop, duplicate, reorder, delay, corrupt (corrupt-bit, corrupt-field), rate or link-down")
        ->required();
    const auto option = [&](const char* name, std::string& value, const char* help, const char* type) {
        add_->add_option(name, value, help)->option_text(type);
    };
    option("--device", rule_.device, "At this device's port only", "NAME");
    option("--direction", rule_.direction, "When the port sends (default), receives, or both", "out|in|both");
    option("--qp", rule_.qp, "Packets to this queue pair only", "NUMBER");
    option("--opcode", rule_.opcode, "Packets of this operation only: rc-send-only, ud-send-only, 0x04",
           "NAME|0xNN");
    option("--psn", rule_.psn, "Packets with these sequence numbers only", "A[-B]");
    option("--count", rule_.count, "At most so often", "N");
    option("--skip", rule_.skip, "Let so many matching packets through first", "N");
    option("--probability", rule_.probability, "Of each matching packet: 0.01 or 1%", "P");
    option("--seed", rule_.seed, "Of the rule's chance (default 1): the same seed does the same", "N");
    option("--field", rule_.field,
           "What corrupt changes (the CRCs are right then): opcode, psn, dest-qp, pkey, qkey, rkey, address, "
           "length, dlid, slid, payload, ack",
           "NAME");
    option("--amount", rule_.amount,
           "delay: a time, 250us; rate: 10Mbit; reorder: packets that overtake (default 1)", "VALUE");
}

bool FaultCommand::chosen() const {
    return app_->parsed();
}

bool FaultCommand::adds() const {
    return add_->parsed();
}

bool FaultCommand::lists() const {
    return list_->parsed();
}

CheckConfigCommand::CheckConfigCommand(CLI::App& app)
    : app_(app.add_subcommand("check-config", "Check a configuration as uibd reads it; show its devices")) {
    app_->add_option("FILE", file_, "Configuration (TOML)")->required();
}

bool CheckConfigCommand::chosen() const {
    return app_->parsed();
}

}  // namespace uib::cli
