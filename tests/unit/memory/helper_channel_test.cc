// HelperChannel and ProcessSpace's helper mode, with a thread in the provider's part.
#include "engine/memory/helper_channel.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "engine/memory/process_space.h"

namespace uib::memory {
namespace {

using std::chrono::milliseconds;
constexpr std::size_t kStaging = 4096;

/// What came in a request.
struct Received {
    ipc::HelperRequest head;
    std::vector<ipc::HelperPiece> pieces;
};

/// The client's side: a thread that answers requests until the socket closes.
class Helper {
  public:
    using Answer = std::function<ipc::HelperReply(const Received&, std::byte* staging)>;

    Helper(int socket, int staging_fd, Answer answer) : socket_(socket), answer_(std::move(answer)) {
        staging_ = static_cast<std::byte*>(
            mmap(nullptr, kStaging, PROT_READ | PROT_WRITE, MAP_SHARED, staging_fd, 0));
        thread_ = std::thread([this] { run(); });
    }
    ~Helper() {
        shutdown(socket_.get(), SHUT_RDWR);
        thread_.join();
        munmap(staging_, kStaging);
    }
    Helper(const Helper&) = delete;
    Helper& operator=(const Helper&) = delete;

    /// Copies as asked, within `memory`, whose first byte has address 0.
    static ipc::HelperReply copy(std::vector<std::byte>& memory, const Received& request,
                                 std::byte* staging) {
        for (std::uint32_t i = 0; i < request.pieces.size(); ++i) {
            const ipc::HelperPiece& piece = request.pieces[i];
            if (piece.address > memory.size() || piece.length > memory.size() - piece.address) {
                return {request.head.tag, EFAULT, i, 0};
            }
            std::byte* const client = memory.data() + piece.address;
            std::byte* const stage = staging + piece.staging_offset;
            if (request.head.to_client != 0) {
                std::memcpy(client, stage, piece.length);
            } else {
                std::memcpy(stage, client, piece.length);
            }
        }
        return {request.head.tag, 0, 0, 0};
    }

  private:
    void run() {
        std::byte buffer[4096];
        for (;;) {
            const ssize_t got = recv(socket_.get(), buffer, sizeof(buffer), 0);
            if (got < static_cast<ssize_t>(sizeof(ipc::HelperRequest))) return;
            Received request;
            std::memcpy(&request.head, buffer, sizeof(request.head));
            request.pieces.resize(request.head.count);
            std::memcpy(request.pieces.data(), buffer + sizeof(request.head),
                        static_cast<std::size_t>(got) - sizeof(request.head));
            const ipc::HelperReply reply = answer_(request, staging_);
            if (send(socket_.get(), &reply, sizeof(reply), MSG_NOSIGNAL) < 0) return;
        }
    }
    OwnedFd socket_;
    Answer answer_;
    std::byte* staging_ = nullptr;
    std::thread thread_;
};

class HelperChannelTest : public testing::Test {
  protected:
    void SetUp() override {
        int ends[2];
        ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
        client_end_ = ends[1];
        channel_ = HelperChannel::make(OwnedFd(ends[0]), kStaging, milliseconds(2000));
        ASSERT_NE(channel_, nullptr);
        for (std::size_t i = 0; i < memory_.size(); ++i) memory_[i] = static_cast<std::byte>('a' + i % 26);
    }
    void start(Helper::Answer answer) {
        helper_ = std::make_unique<Helper>(client_end_, channel_->staging_fd(), std::move(answer));
    }
    void start_honest() {
        start([this](const Received& request, std::byte* staging) {
            ++requests_;
            largest_ = std::max<std::size_t>(largest_, request.pieces.size());
            return Helper::copy(memory_, request, staging);
        });
    }
    std::string read(std::vector<RemoteRange> ranges) {
        std::size_t total = 0;
        for (const RemoteRange& range : ranges) total += range.length;
        std::string text(total, '?');
        return channel_->read(ranges, reinterpret_cast<std::byte*>(text.data())) ? text : "failed";
    }
    std::string expected(std::size_t from, std::size_t length) const {
        return {reinterpret_cast<const char*>(memory_.data()) + from, length};
    }

    int client_end_ = -1;
    std::vector<std::byte> memory_ = std::vector<std::byte>(20000);
    std::atomic<int> requests_{0};
    std::atomic<std::size_t> largest_{0};
    std::unique_ptr<HelperChannel> channel_;
    std::unique_ptr<Helper> helper_;
};

TEST_F(HelperChannelTest, reads_and_writes_through_staging) {
    start_honest();
    EXPECT_EQ(read({{10, 5}, {0, 0}, {100, 3}}), expected(10, 5) + expected(100, 3));
    EXPECT_EQ(requests_, 1);
    const RemoteRange targets[] = {{50, 4}, {60, 6}};
    const std::string a = "0123456";
    const std::string b = "789";
    const ConstBytes sources[] = {{reinterpret_cast<const std::byte*>(a.data()), 7},
                                  {reinterpret_cast<const std::byte*>(b.data()), 3}};
    EXPECT_TRUE(channel_->write(targets, sources));
    EXPECT_EQ(expected(50, 4), "0123");
    EXPECT_EQ(expected(60, 6), "456789");
    EXPECT_EQ(requests_, 2);
}

TEST_F(HelperChannelTest, copies_larger_than_the_staging_memory_go_in_parts) {
    start_honest();
    EXPECT_EQ(read({{0, 15000}}), expected(0, 15000));
    EXPECT_EQ(requests_, 4);
    const std::string data(10000, 'w');
    const RemoteRange target = {5000, data.size()};
    const ConstBytes source = {reinterpret_cast<const std::byte*>(data.data()), data.size()};
    EXPECT_TRUE(channel_->write({&target, 1}, {&source, 1}));
    EXPECT_EQ(expected(5000, 10000), data);
    EXPECT_EQ(requests_, 7);
}

TEST_F(HelperChannelTest, no_more_pieces_than_the_protocol_allows) {
    start_honest();
    std::vector<RemoteRange> ranges;
    std::string all;
    for (std::size_t i = 0; i < 150; ++i) {
        ranges.push_back({i * 7, 2});
        all += expected(i * 7, 2);
    }
    EXPECT_EQ(read(ranges), all);
    EXPECT_EQ(requests_, 3);
    EXPECT_EQ(largest_, ipc::kHelperMaxPieces);
}

TEST_F(HelperChannelTest, a_bad_address_fails_the_copy_but_not_the_channel) {
    start_honest();
    EXPECT_EQ(read({{0, 4}, {30000, 1}}), "failed");
    EXPECT_FALSE(channel_->failed());
    EXPECT_EQ(read({{0, 4}}), expected(0, 4));
}

TEST_F(HelperChannelTest, a_helper_that_never_answers_is_given_up_in_time) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    const OwnedFd silent(ends[1]);
    ProcessSpace space(HelperChannel::make(OwnedFd(ends[0]), kStaging, milliseconds(50)));
    EXPECT_EQ(space.mode(), ipc::MemoryMode::kHelper);
    EXPECT_FALSE(space.failed());
    std::byte byte{};
    const RemoteRange range = {0, 1};
    const auto start = std::chrono::steady_clock::now();
    EXPECT_FALSE(space.read({&range, 1}, &byte));
    const auto waited = std::chrono::steady_clock::now() - start;
    EXPECT_GE(waited, milliseconds(50));
    EXPECT_LT(waited, milliseconds(5000));
    EXPECT_TRUE(space.failed());
    // No second wait.
    const auto again = std::chrono::steady_clock::now();
    for (int i = 0; i < 100; ++i) EXPECT_FALSE(space.read({&range, 1}, &byte));
    EXPECT_LT(std::chrono::steady_clock::now() - again, milliseconds(2000));
    char request[4096];
    EXPECT_GT(recv(silent.get(), request, sizeof(request), MSG_DONTWAIT), 0);
    EXPECT_LT(recv(silent.get(), request, sizeof(request), MSG_DONTWAIT), 0);
    close(client_end_);
}

TEST_F(HelperChannelTest, a_wrong_tag_is_a_broken_helper) {
    start([this](const Received& request, std::byte* staging) {
        ipc::HelperReply reply = Helper::copy(memory_, request, staging);
        ++reply.tag;
        return reply;
    });
    EXPECT_EQ(read({{0, 4}}), "failed");
    EXPECT_TRUE(channel_->failed());
}

TEST_F(HelperChannelTest, a_reply_of_the_wrong_size_is_a_broken_helper) {
    std::thread client([this] {
        char request[4096];
        EXPECT_GT(recv(client_end_, request, sizeof(request), 0), 0);
        EXPECT_EQ(send(client_end_, request, sizeof(ipc::HelperReply) + 1, 0),
                  static_cast<ssize_t>(sizeof(ipc::HelperReply) + 1));
    });
    EXPECT_EQ(read({{0, 4}}), "failed");
    client.join();
    EXPECT_TRUE(channel_->failed());
    close(client_end_);
}

TEST_F(HelperChannelTest, a_helper_that_is_gone_is_noticed_at_once) {
    close(client_end_);
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(read({{0, 4}}), "failed");
    EXPECT_LT(std::chrono::steady_clock::now() - start, milliseconds(1500));
    EXPECT_TRUE(channel_->failed());
}

TEST_F(HelperChannelTest, a_space_marked_dead_asks_its_helper_for_nothing) {
    start_honest();
    ProcessSpace space(std::move(channel_));
    std::byte byte{};
    const RemoteRange range = {0, 1};
    EXPECT_TRUE(space.read({&range, 1}, &byte));
    space.mark_dead();
    EXPECT_FALSE(space.read({&range, 1}, &byte));
    const ConstBytes source = {&byte, 1};
    EXPECT_FALSE(space.write({&range, 1}, {&source, 1}));
    EXPECT_EQ(requests_, 1);
    EXPECT_FALSE(space.failed());
}

TEST_F(HelperChannelTest, the_staging_memory_cannot_be_cut_short) {
    EXPECT_NE(ftruncate(channel_->staging_fd(), 0), 0);
    EXPECT_EQ(errno, EPERM);
    close(client_end_);
}

}  // namespace
}  // namespace uib::memory
