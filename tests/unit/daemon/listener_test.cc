#include "engine/daemon/listener.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace uib::daemon {
namespace {

class ListenerTest : public ::testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/uib-listener-XXXXXX";
        ASSERT_NE(::mkdtemp(name), nullptr);
        directory_ = name;
        path_ = directory_ + "/deep/engine.sock";
    }
    void TearDown() override { std::filesystem::remove_all(directory_); }
    bool can_connect() {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path, path_.data(), path_.size());
        const ipc::UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET, 0));
        return ::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    }
    std::string directory_, path_;
};

TEST_F(ListenerTest, MakesDirectoriesListensAndCleansUp) {
    {
        const Listener listener(path_);
        EXPECT_TRUE(can_connect());
    }
    EXPECT_TRUE(std::filesystem::is_empty(directory_ + "/deep"));
}

TEST_F(ListenerTest, SecondEngineIsRefusedAndTheFirstServesOn) {
    const Listener first(path_);
    EXPECT_THROW(Listener second(path_), EngineRunning);
    EXPECT_TRUE(can_connect());
}

TEST_F(ListenerTest, StaleSocketIsTakenOver) {
    std::filesystem::create_directories(directory_ + "/deep");
    {
        // A socket file whose owner died without cleaning up.
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path, path_.data(), path_.size());
        const ipc::UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET, 0));
        ASSERT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    }
    ASSERT_FALSE(can_connect());
    const Listener listener(path_);
    EXPECT_TRUE(can_connect());
}

TEST_F(ListenerTest, PathThatDoesNotFitIsAnError) {
    EXPECT_THROW(Listener(std::string(300, 'x')), std::system_error);
}

}  // namespace
}  // namespace uib::daemon
