// Two connected RC queue pairs on one CQ, and a region of patterned memory.
#pragma once

#include <array>
#include <cstdint>

#include "tests/unit/verbs/adapter_fixture.h"

namespace uib::verbs {

class PairTest : public AdapterTest {
  protected:
    void SetUp() override {
        cq_ = make_cq(64);
        a_ = make_qp(cq_);
        b_ = make_qp(cq_);
        connect(a_, b_);
        connect(b_, a_);
        region_ = register_memory(memory_.data(), memory_.size(),
                                  ipc::kAccessLocalWrite | ipc::kAccessRemoteWrite | ipc::kAccessRemoteRead |
                                      ipc::kAccessRemoteAtomic);
        for (std::size_t i = 0; i < memory_.size(); ++i) memory_[i] = static_cast<std::uint8_t>(i * 7);
    }
    ipc::SendWqe wqe(ipc::WorkOpcode opcode, std::uint64_t wr_id, std::size_t remote = 0) {
        ipc::SendWqe w{};
        w.opcode = static_cast<std::uint8_t>(opcode);
        w.wr_id = wr_id;
        w.rkey = region_.rkey;
        w.remote_address = reinterpret_cast<std::uint64_t>(memory_.data() + remote);
        return w;
    }

    TestCq cq_;
    TestQp a_, b_;
    ipc::RegMrReply region_;
    std::array<std::uint8_t, 65536> memory_{};
};

}  // namespace uib::verbs
