// What a fork's child may do with the context that it inherited (provider/fork.h). The parent plays two
// engines: the one that its own context is connected to, and the one that the child's session reaches.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "provider/cq.h"
#include "provider/device.h"
#include "provider/memory.h"
#include "provider/pd.h"
#include "provider/post_recv.h"
#include "provider/post_send.h"
#include "provider/qp.h"
#include "provider/srq.h"
#include "tests/unit/provider/fake_engine.h"

namespace uib::provider::test {
namespace {

constexpr int kPatienceMs = 20'000;

bool readable(int fd, int patience_ms) {
    pollfd waiting{fd, POLLIN, 0};
    return ::poll(&waiting, 1, patience_ms) == 1 && (waiting.revents & POLLIN) != 0;
}

/// In children, whose only word is their exit status: the line of what did not hold.
#define MUST(condition) \
    if (!(condition)) return __LINE__ % 250 + 1

class Fork : public ::testing::Test {
  protected:
    // What the fake engine and the test share is ordered by way of the child, another process, where the
    // sanitizer of this one sees no order: it would call the test's own looking a race.
    void SetUp() override {
#if defined(__SANITIZE_THREAD__)
        GTEST_SKIP() << "the thread sanitizer does not see order that another process makes";
#endif
    }

    Fork() {
        EXPECT_NE(::mkdtemp(directory.data()), nullptr);
        path = directory + "/engine.sock";
        ::setenv("UIB_SOCKET", path.c_str(), 1);
        listener.reset(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::copy(path.begin(), path.end(), address.sun_path);
        EXPECT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
        EXPECT_EQ(::listen(listener.get(), 4), 0);
        int ends[2];
        EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
        reports.reset(ends[0]);
        report_end.reset(ends[1]);
        EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
        permits.reset(ends[0]);
        permit_end.reset(ends[1]);
        pd = opened.make_pd();
        cq = opened.make_cq(4);
        qp = opened.make_qp(pd, cq);
        opened.move_to(qp, IBV_QPS_RTS);
        calls_before = opened.engine.operations.size();
    }
    ~Fork() override {
        ::unsetenv("UIB_SOCKET");
        ::unlink(path.c_str());
        ::rmdir(directory.c_str());
    }

    template <typename F>
    pid_t child(F&& work) {
        const pid_t pid = ::fork();
        if (pid == 0) ::_exit(work());
        return pid;
    }
    int status_of(pid_t pid) {
        int status = -1;
        EXPECT_EQ(::waitpid(pid, &status, 0), pid);
        return status;
    }
    UniqueFd accept() {
        EXPECT_TRUE(readable(listener.get(), kPatienceMs));
        return UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    }
    void report() {
        EXPECT_EQ(::write(report_end.get(), "x", 1), 1);
    }
    void await_report() {
        char got = 0;
        ASSERT_TRUE(readable(reports.get(), kPatienceMs));
        ASSERT_EQ(::read(reports.get(), &got, 1), 1);
    }
    /// The parent's session saw nothing of its child and works.
    void expect_parent_undisturbed() {
        EXPECT_EQ(opened.engine.operations.size(), calls_before);
        EXPECT_TRUE(opened.context->alive());
        EXPECT_NE(opened.make_pd(), nullptr);
        EXPECT_EQ(send(qp, 5), 0);
        opened.engine.complete_send(0, 5);
        ibv_wc wc{};
        EXPECT_EQ(poll_cq(cq, 1, &wc), 1);
        EXPECT_EQ(wc.wr_id, 5U);
    }
    static int send(ibv_qp* on, std::uint64_t wr_id) {
        ibv_send_wr wr{};
        wr.wr_id = wr_id;
        wr.opcode = IBV_WR_SEND;
        ibv_send_wr* bad = nullptr;
        return post_send(on, &wr, &bad);
    }

    std::string directory = "/tmp/uib-fork-XXXXXX";
    std::string path;
    UniqueFd listener;
    UniqueFd reports, report_end;  ///< from the child
    UniqueFd permits, permit_end;  ///< to the child
    OpenedContext opened;
    ibv_pd* pd = nullptr;
    ibv_cq* cq = nullptr;
    ibv_qp* qp = nullptr;
    std::size_t calls_before = 0;
};

TEST_F(Fork, a_child_that_makes_no_call_opens_nothing) {
    const pid_t pid = child([&] {
        opened.context->stop();
        return 0;
    });
    EXPECT_EQ(status_of(pid), 0);
    EXPECT_FALSE(readable(listener.get(), 0));
    expect_parent_undisturbed();
}

TEST_F(Fork, inherited_queues_are_the_parents) {
    ibv_srq_init_attr wish{};
    wish.attr = {4, 1, 0};
    ibv_srq* srq = create_srq(pd, &wish);
    ASSERT_NE(srq, nullptr);
    calls_before = opened.engine.operations.size();
    const pid_t pid = child([&] {
        ibv_wc wc{};
        ibv_recv_wr wr{1, nullptr, nullptr, 0};
        ibv_recv_wr* bad = nullptr;
        MUST(poll_cq(cq, 1, &wc) < 0);
        MUST(req_notify_cq(cq, 0) == EIO);
        MUST(resize_cq(cq, 8) == EIO);
        MUST(send(qp, 1) == EIO);
        MUST(post_recv(qp, &wr, &bad) == EIO && bad == &wr);
        bad = nullptr;
        MUST(post_srq_recv(srq, &wr, &bad) == EIO && bad == &wr);
        ibv_device_attr_ex attributes{};
        MUST(query_device_ex(opened.verbs(), nullptr, &attributes, sizeof attributes) == 0);
        return 0;
    });
    EXPECT_EQ(status_of(pid), 0);
    EXPECT_FALSE(readable(listener.get(), 0));
    expect_parent_undisturbed();
}

TEST_F(Fork, a_child_makes_and_uses_objects_of_a_session_of_its_own) {
    const pid_t pid = child([&] {
        ibv_pd* own_pd = opened.make_pd();
        MUST(own_pd != nullptr && opened.context->alive());
        ibv_cq* own_cq = opened.make_cq(4);
        ibv_qp* own_qp = opened.make_qp(own_pd, own_cq);
        MUST(own_qp != nullptr && Qp::of(own_qp).slot == Qp::of(qp).slot);
        opened.move_to(own_qp, IBV_QPS_RTS);
        MUST(send(own_qp, 77) == 0);
        report();
        ibv_wc wc{};
        int found = 0;
        while ((found = poll_cq(own_cq, 1, &wc)) == 0) {
        }
        MUST(found == 1 && wc.wr_id == 77 && wc.qp_num == own_qp->qp_num);
        MUST(send(qp, 1) == EIO);
        MUST(destroy_qp(own_qp) == 0 && destroy_cq(own_cq) == 0);
        opened.context->stop();
        return 0;
    });
    FakeEngine childs(accept());
    await_report();
    EXPECT_EQ(childs.send_wqe(0)->wr_id, 77U);
    childs.complete_send(0, 77);
    EXPECT_EQ(status_of(pid), 0);
    EXPECT_EQ(childs.joined_cookie, opened.engine.client_cookie);
    EXPECT_EQ(childs.operations[0], ipc::Operation::kHello);
    EXPECT_EQ(childs.operations[1], ipc::Operation::kImportContext);
    EXPECT_EQ(childs.operations[2], ipc::Operation::kAllocPd);
    expect_parent_undisturbed();
}

TEST_F(Fork, a_child_controls_what_it_inherited_by_the_same_handles) {
    const std::uint32_t handle = qp->handle;
    const pid_t pid = child([&] {
        MUST(opened.make_pd() != nullptr);
        report();
        char go = 0;
        MUST(::read(permits.get(), &go, 1) == 1);
        opened.move_to(qp, IBV_QPS_ERR);
        char bytes[64];
        MUST(reg_mr(pd, bytes, sizeof bytes, 0, IBV_ACCESS_LOCAL_WRITE) != nullptr);
        MUST(destroy_qp(qp) == 0 && destroy_cq(cq) == 0 && dealloc_pd(pd) == 0);
        return 0;
    });
    FakeEngine childs(accept());
    await_report();
    // Events that the program was told of in the parent are not waited for here.
    childs.owed = {3, 2};
    EXPECT_EQ(::write(permit_end.get(), "x", 1), 1);
    EXPECT_EQ(status_of(pid), 0);
    EXPECT_EQ(childs.destroyed_qp, handle);
    EXPECT_EQ(childs.modified.state, IBV_QPS_ERR);
    EXPECT_EQ(childs.registered.pd, pd->handle);
    expect_parent_undisturbed();
}

TEST_F(Fork, a_childs_events_are_its_own) {
    const ipc::AsyncEvent parents{1, IBV_EVENT_PORT_ACTIVE, 0};
    const ipc::AsyncEvent own{2, IBV_EVENT_PORT_ERR, 0};
    const pid_t pid = child([&] {
        MUST(opened.make_pd() != nullptr);
        report();
        ipc::AsyncEvent got{};
        MUST(::read(opened.verbs()->async_fd, &got, sizeof got) == static_cast<ssize_t>(sizeof got));
        MUST(got.element == own.element);
        return 0;
    });
    FakeEngine childs(accept());
    await_report();
    ASSERT_EQ(::write(opened.engine.async_pipe.get(), &parents, sizeof parents), ssize_t{sizeof parents});
    ASSERT_EQ(::write(childs.async_pipe.get(), &own, sizeof own), ssize_t{sizeof own});
    EXPECT_EQ(status_of(pid), 0);
    ipc::AsyncEvent got{};
    ASSERT_EQ(::read(opened.verbs()->async_fd, &got, sizeof got), ssize_t{sizeof got});
    EXPECT_EQ(got.element, parents.element);
}

TEST_F(Fork, inherited_regions_are_not_read_here) {
    alignas(8) char bytes[32] = "the parent's";
    const auto address = reinterpret_cast<std::uint64_t>(bytes);
    ibv_mr* mr = reg_mr(pd, bytes, sizeof bytes, address, IBV_ACCESS_LOCAL_WRITE);
    ASSERT_NE(mr, nullptr);
    const pid_t pid = child([&] {
        ibv_qp* own = opened.make_qp(pd, opened.make_cq(4));
        opened.move_to(own, IBV_QPS_RTS);
        ibv_sge entry{address, sizeof bytes, mr->lkey};
        ibv_send_wr wr{};
        wr.sg_list = &entry;
        wr.num_sge = 1;
        wr.opcode = IBV_WR_SEND;
        ibv_send_wr* bad = nullptr;
        MUST(post_send(own, &wr, &bad) == 0);
        // The engine is to fetch the bytes: a short payload would else be copied into the request here.
        const auto& wqe = *Qp::of(own).sq.wqe(0);
        MUST((wqe.flags & (ipc::kWorkInline | ipc::kWorkStaged)) == 0 && wqe.sge_count == 1);
        return 0;
    });
    FakeEngine childs(accept());
    EXPECT_EQ(status_of(pid), 0);
}

TEST_F(Fork, a_childs_child_joins_through_the_session_it_inherited) {
    const pid_t pid = child([&] {
        MUST(opened.make_pd() != nullptr);
        const pid_t grandchild = child([&] {
            MUST(opened.make_pd() != nullptr);
            return 0;
        });
        MUST(status_of(grandchild) == 0);
        MUST(opened.make_pd() != nullptr);
        return 0;
    });
    FakeEngine childs(accept());
    FakeEngine grandchilds(accept());
    EXPECT_EQ(status_of(pid), 0);
    EXPECT_EQ(childs.joined_cookie, opened.engine.client_cookie);
    EXPECT_EQ(grandchilds.joined_cookie, childs.client_cookie);
    EXPECT_EQ(std::count(childs.operations.begin(), childs.operations.end(), ipc::Operation::kAllocPd), 2);
    expect_parent_undisturbed();
}

TEST_F(Fork, a_session_that_could_not_be_opened_is_tried_again) {
    const pid_t pid = child([&] {
        MUST(opened.make_pd() == nullptr && errno == EIO && !opened.context->dead());
        MUST(opened.make_pd() != nullptr);
        return 0;
    });
    UniqueFd first = accept();
    first.reset();  // hangs up without an answer
    FakeEngine childs(accept());
    EXPECT_EQ(status_of(pid), 0);
    EXPECT_EQ(childs.joined_cookie, opened.engine.client_cookie);
}

TEST_F(Fork, a_child_of_a_dead_engine_can_still_tidy_up) {
    listener.reset();
    const pid_t pid = child([&] {
        MUST(opened.make_pd() == nullptr && errno == EIO && opened.context->dead());
        MUST(destroy_qp(qp) == 0 && destroy_cq(cq) == 0 && dealloc_pd(pd) == 0);
        return 0;
    });
    EXPECT_EQ(status_of(pid), 0);
    expect_parent_undisturbed();
}

TEST_F(Fork, locks_that_other_threads_hold_do_not_hang_a_child) {
    listener.reset();
    std::atomic<bool> stop{false};
    std::thread busy([&] {
        ibv_wc wc{};
        for (std::uint32_t i = 0; !stop; ++i) {
            ibv_pd* own = opened.make_pd();
            EXPECT_EQ(send(qp, 1), 0);
            opened.engine.complete_send(i, 1);
            EXPECT_EQ(poll_cq(cq, 1, &wc), 1);
            EXPECT_EQ(dealloc_pd(own), 0);
        }
    });
    for (int round = 0; round < 100; ++round) {
        const pid_t pid = child([&] {
            ibv_wc wc{};
            MUST(poll_cq(cq, 1, &wc) < 0 && send(qp, 1) == EIO);
            MUST(opened.make_pd() == nullptr);
            MUST(destroy_qp(qp) == 0 && destroy_cq(cq) == 0);
            opened.context->stop();
            return 0;
        });
        EXPECT_EQ(status_of(pid), 0);
    }
    stop = true;
    busy.join();
}

}  // namespace
}  // namespace uib::provider::test
