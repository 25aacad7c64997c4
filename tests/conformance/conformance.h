// Fixtures of the conformance tests and the marks that tie tests to rows of transport_rows.tsv.
//
// A test's name starts with the first row it shows. ROWS names all rows; XRC_ROWS those that the same script
// shows when it runs on XRC (the table's twins "on RD and XRC"). coverage.py reads the marks from the tests'
// JSON output.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/conformance/peer.h"
#include "tests/conformance/rows.h"

#define XRC_ROWS(...) \
    if (is_xrc()) uib::conformance::mark("xrc_rows", {__VA_ARGS__})

namespace uib::conformance {

/// One machine under test of a fixed service.
class Conformance : public ::testing::Test {
  protected:
    explicit Conformance(transport::Service service) : peer(service) {}
    void TearDown() override { peer.ends(); }
    void connect(QpState to = QpState::kRts) { peer.connect(to); }

    Peer peer;
};

template <transport::Service kService>
class OnService : public Conformance {
  protected:
    OnService() : Conformance(kService) {}
};
using UcRequester = OnService<transport::Service::kUc>;
using UcResponder = OnService<transport::Service::kUc>;
using UdRequester = OnService<transport::Service::kUd>;
using UdResponder = OnService<transport::Service::kUd>;
using RcRequester = OnService<transport::Service::kRc>;
using RcResponder = OnService<transport::Service::kRc>;

/// The scripts that run on RC and XRC alike.
class OnReliable : public Conformance, public ::testing::WithParamInterface<transport::Service> {
  protected:
    OnReliable() : Conformance(GetParam()) {}
    [[nodiscard]] static bool is_xrc() { return GetParam() != transport::Service::kRc; }
};
class Requester : public OnReliable {
  protected:
    /// Connects to a peer that generates no end-to-end credits, as its initial acknowledge says.
    void connect_without_credits() {
        connect();
        if (!is_xrc()) peer.sends(ack(-1));
    }
    /// Answers request packets up to and including `psn` and expects `completions` more of them.
    void acknowledge(int psn, int completions) {
        peer.sends(ack(psn));
        for (int i = 0; i < completions; ++i) peer.completes();
    }
};
class Responder : public OnReliable {};

/// Names the instances of parameterized tests.
inline std::string service_name(const ::testing::TestParamInfo<transport::Service>& info) {
    switch (info.param) {
        case transport::Service::kRc:
            return "RC";
        case transport::Service::kUc:
            return "UC";
        case transport::Service::kUd:
            return "UD";
        default:
            return "XRC";
    }
}

}  // namespace uib::conformance
