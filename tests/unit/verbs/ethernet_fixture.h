// A client with the right to raw packets on Ethernet devices.
#pragma once

#include <algorithm>
#include <cstring>

#include "tests/unit/verbs/adapter_fixture.h"

namespace uib::verbs {

class EthernetTest : public AdapterTest {
  protected:
    EthernetTest() : AdapterTest({{"eth0", LinkLayer::kEthernet}, {"eth1", LinkLayer::kEthernet}, {"ib0"}}) {
        client_->allow_raw_packets();
        std::fill(std::begin(buffer_), std::end(buffer_), std::byte{0xAA});
        key_ = register_memory(buffer_, sizeof buffer_, IBV_ACCESS_LOCAL_WRITE).lkey;
    }

    TestQp make_raw(const TestCq& cq) {
        TestQp qp = make_qp(cq, ipc::Service::kRawPacket);
        ipc::QpAttributes a{};
        a.port = 1;
        EXPECT_EQ(modify(qp, IBV_QPS_INIT, IBV_QP_PORT, a), 0);
        EXPECT_EQ(modify(qp, IBV_QPS_RTR, 0, a), 0);
        EXPECT_EQ(modify(qp, IBV_QPS_RTS, 0, a), 0);
        return qp;
    }
    static ipc::CreateFlowRequest rule_for(const TestQp& qp, const net::MacAddress& mac) {
        ipc::CreateFlowRequest request{};
        request.qp = qp.reply.handle;
        request.port = 1;
        std::memcpy(request.value.destination_mac, mac.data(), mac.size());
        std::memset(request.mask.destination_mac, 0xFF, mac.size());
        return request;
    }
    /// Sends 64 bytes to `mac` from the start of the buffer.
    void send_frame(TestQp& qp, const net::MacAddress& mac) {
        std::memcpy(buffer_, mac.data(), mac.size());
        ipc::SendWqe wqe{};
        wqe.opcode = static_cast<std::uint8_t>(ipc::WorkOpcode::kSend);
        post_send(qp, wqe, buffer_, 64, key_);
    }
    const net::MacAddress& mac(unsigned device) { return adapter_.devices()[device]->mac(); }

    std::byte buffer_[4096];
    std::uint32_t key_ = 0;
};

}  // namespace uib::verbs
