// Each right by itself: what a queue pair and a key allow of WRITE, READ and atomics (IBA 9.7.4.1.4,
// 9.7.4.1.5, 9.8.2.2.4), with all other rights given.
#include "tests/conformance/conformance.h"

namespace uib::conformance {
namespace {

constexpr std::uint64_t kBase = Station::kBase;
constexpr std::uint32_t kEveryRight =
    ipc::kAccessRemoteWrite | ipc::kAccessRemoteRead | ipc::kAccessRemoteAtomic;

struct Function {
    const char* name;
    std::uint32_t right;
    std::function<Frame(std::uint32_t rkey)> request;
};

const Function kFunctions[] = {
    {"WRITE", ipc::kAccessRemoteWrite, [](std::uint32_t key) { return write_only(0, key, kBase, 8); }},
    {"WRITE First", ipc::kAccessRemoteWrite,
     [](std::uint32_t key) { return write_first(0, key, kBase, 300); }},
    {"ATOMIC WRITE", ipc::kAccessRemoteWrite, [](std::uint32_t key) { return atomic_write(0, key, kBase); }},
    {"READ", ipc::kAccessRemoteRead, [](std::uint32_t key) { return read(0, key, kBase, 8); }},
    {"CmpSwap", ipc::kAccessRemoteAtomic,
     [](std::uint32_t key) { return compare_swap(0, key, kBase, 0, 1); }},
    {"FetchAdd", ipc::kAccessRemoteAtomic, [](std::uint32_t key) { return fetch_add(0, key, kBase, 1); }},
};

/// A key for the whole memory with these remote rights.
std::uint32_t key_with(Peer& peer, std::uint32_t rights) {
    memory::RegionInit init = peer.machine().region->init();
    init.access = ipc::kAccessLocalWrite | rights;
    return peer.machine().keys().add_region(std::move(init))->key();
}

/// Nothing of the message has come to memory.
void untouched(Peer& peer) {
    EXPECT_TRUE(peer.machine().holds(0, 300, 9));
}

void refused(Peer& peer, std::uint8_t syndrome, QpEvent event) {
    peer.expects(nak(syndrome, 0).msn(0));
    peer.raises(event);
    EXPECT_EQ(peer.state(), QpState::kError);
    untouched(peer);
    peer.ends();
}

TEST_P(Responder, C9_83_the_right_to_one_function_is_not_that_to_another) {
    ROWS("C9-82", "C9-83");
    XRC_ROWS("o9-50");
    for (const Function& function : kFunctions) {
        SCOPED_TRACE(function.name);
        Peer without(GetParam());
        without.parameters().access = kEveryRight & ~function.right;
        without.connect();
        without.machine().fill(0, 300, 9);
        without.sends(function.request(without.rkey()));
        refused(without, transport::kNakInvalidRequest, QpEvent::kRequestError);

        Peer with(GetParam());
        with.parameters().access = function.right;
        with.connect();
        with.sends(function.request(with.rkey()).asks_ack());
        EXPECT_EQ(with.hears_all().size(), 1U);
        EXPECT_EQ(with.state(), QpState::kRts);
        with.ends();
    }
}

TEST_P(Responder, C9_89_a_key_for_one_function_is_none_for_another) {
    ROWS("C9-89", "C9-124");
    for (const Function& function : kFunctions) {
        SCOPED_TRACE(function.name);
        Peer without(GetParam());
        const std::uint32_t key = key_with(without, kEveryRight & ~function.right);
        without.connect();
        without.machine().fill(0, 300, 9);
        without.sends(function.request(key));
        refused(without, transport::kNakRemoteAccess, QpEvent::kAccessError);

        Peer with(GetParam());
        const std::uint32_t good = key_with(with, function.right);
        with.connect();
        with.sends(function.request(good).asks_ack());
        EXPECT_EQ(with.hears_all().size(), 1U);
        EXPECT_EQ(with.state(), QpState::kRts);
        with.ends();
    }
}

TEST_F(UcResponder, C9_192_2_1_a_right_to_read_is_none_to_write) {
    ROWS("C9-168", "C9-192.2.1");
    const std::uint32_t others = kEveryRight & ~std::uint32_t{ipc::kAccessRemoteWrite};
    for (const bool of_key : {true, false}) {
        Peer one_peer(transport::Service::kUc);
        const std::uint32_t key = key_with(one_peer, of_key ? others : kEveryRight);
        one_peer.parameters().access = of_key ? kEveryRight : others;
        one_peer.connect();
        one_peer.machine().fill(0, 300, 9);
        one_peer.sends(write_only(0, key, kBase, 8));
        one_peer.sends(write_first(1, key, kBase, 300));
        one_peer.sends(write_last(2, 44));
        untouched(one_peer);
        EXPECT_EQ(one_peer.state(), QpState::kRts);
        one_peer.ends();
    }
}

}  // namespace
}  // namespace uib::conformance
