// What a program gets when it asks for what it cannot have: each refusal's errno, through plain libibverbs.
//
//   refusals memory     regions that are not mapped, read-only, too long, or wrap
//   refusals sizes      queues, lists and requests beyond the device's limits
//   refusals exhaust    as many PDs as the device has, then one more (--all: the same with every kind of
//   object) kind)
//
// Prints a line a check, exits with 1 if one of them got something else.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "examples/kit/memory.h"
#include "examples/kit/verbs.h"

namespace {

using namespace uib::kit;

int failures = 0;

/// `got` is 0 where the call succeeded, else the errno.
void expect(const char* what, int got, std::initializer_list<int> wanted) {
    const bool ok = std::find(wanted.begin(), wanted.end(), got) != wanted.end();
    std::printf("%s: %s: %s\n", ok ? "ok" : "FAILED", what, got == 0 ? "succeeded" : std::strerror(got));
    failures += ok ? 0 : 1;
}

template <typename Destroy, typename T>
int outcome(T* object, Destroy destroy) {
    if (object == nullptr) return errno;
    destroy(object);
    return 0;
}

int try_region(ibv_pd& pd, void* address, std::size_t bytes, int access) {
    return outcome(ibv_reg_mr(&pd, address, bytes, access), ibv_dereg_mr);
}

void memory(ibv_context& context) {
    const ProtectionDomain pd = make_pd(context);
    const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    Buffer buffer(MemoryKind::kPrivate, 8 * page);
    std::byte* base = buffer.data();
    const int all = kAllAccess;
    expect("a mapped region", try_region(*pd, base, 8 * page, all), {0});
    ::mprotect(base + 2 * page, page, PROT_READ);
    expect("a read-only page with local write", try_region(*pd, base, 8 * page, all), {EFAULT});
    expect("a read-only page for reading", try_region(*pd, base + 2 * page, page, IBV_ACCESS_REMOTE_READ),
           {0});
    ::munmap(base + 5 * page, page);
    expect("a hole in the region", try_region(*pd, base + 3 * page, 4 * page, all), {EFAULT});
    expect("only the hole", try_region(*pd, base + 5 * page, page, all), {EFAULT});
    expect("up to the hole", try_region(*pd, base + 3 * page, 2 * page, all), {0});
    expect("past the address space", try_region(*pd, base, SIZE_MAX - page, all), {EFAULT, EINVAL, ENOMEM});
    expect("a terabyte that is not there", try_region(*pd, base, std::size_t{1} << 40, all),
           {EFAULT, EINVAL, ENOMEM});
    expect("address zero", try_region(*pd, nullptr, page, all), {EFAULT, EINVAL});
    expect("remote write without local write", try_region(*pd, base, page, IBV_ACCESS_REMOTE_WRITE),
           {EINVAL});
    expect("the region again", try_region(*pd, base, 2 * page, all), {0});
}

int try_cq(ibv_context& context, int entries) {
    return outcome(ibv_create_cq(&context, entries, nullptr, nullptr, 0), ibv_destroy_cq);
}

int try_qp(ibv_pd& pd, ibv_cq& cq, const QueueSizes& sizes) {
    ibv_qp_init_attr attributes{};
    attributes.send_cq = attributes.recv_cq = &cq;
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap = {sizes.send_requests, sizes.receive_requests, sizes.send_pieces, sizes.receive_pieces,
                      sizes.inline_bytes};
    return outcome(ibv_create_qp(&pd, &attributes), ibv_destroy_qp);
}

int try_srq(ibv_pd& pd, std::uint32_t requests, std::uint32_t pieces) {
    ibv_srq_init_attr attributes{};
    attributes.attr = {requests, pieces, 0};
    return outcome(ibv_create_srq(&pd, &attributes), ibv_destroy_srq);
}

void full_queues(ibv_pd& pd, ibv_cq& cq) {
    QueueSizes sizes{4, 4, 2, 2, 0};
    const QueuePair qp = make_qp(pd, cq, IBV_QPT_RC, sizes);
    ibv_recv_wr receive{};
    ibv_recv_wr* bad_receive = nullptr;
    expect("a receive in RESET", ibv_post_recv(qp.get(), &receive, &bad_receive), {EINVAL});
    const Address own = address_of(*qp, 1);
    connect_qp(*qp, own, own, kAllAccess);
    int posted = 0;
    int result = 0;
    while (posted < 4096 && (result = ibv_post_recv(qp.get(), &receive, &bad_receive)) == 0) ++posted;
    expect("one receive too many", result, {ENOMEM});
    expect("at least as many receives as asked for", posted >= 4 ? 0 : ENOMEM, {0});
    ibv_sge pieces[64]{};
    ibv_send_wr send{};
    ibv_send_wr* bad_send = nullptr;
    send.opcode = IBV_WR_RDMA_WRITE;
    send.sg_list = pieces;
    send.num_sge = 64;
    expect("too many pieces", ibv_post_send(qp.get(), &send, &bad_send), {EINVAL, ENOMEM});
    send.num_sge = 0;
    send.opcode = static_cast<ibv_wr_opcode>(99);
    expect("an unknown opcode", ibv_post_send(qp.get(), &send, &bad_send), {EINVAL, EOPNOTSUPP});
}

void sizes(ibv_context& context) {
    ibv_device_attr device{};
    check(ibv_query_device(&context, &device), "ibv_query_device");
    const ProtectionDomain pd = make_pd(context);
    const CompletionQueue cq = make_cq(context, 64);
    expect("a CQ of no entries", try_cq(context, 0), {EINVAL});
    expect("a CQ of max_cqe entries", try_cq(context, device.max_cqe), {0});
    expect("a CQ of more", try_cq(context, device.max_cqe + 1), {EINVAL});
    const auto most_requests = static_cast<std::uint32_t>(device.max_qp_wr);
    const auto most_pieces = static_cast<std::uint32_t>(device.max_sge);
    expect("a QP of max_qp_wr requests", try_qp(*pd, *cq, {most_requests, most_requests, 1, 1, 0}), {0});
    expect("a QP of more send requests", try_qp(*pd, *cq, {most_requests + 1, 1, 1, 1, 0}), {EINVAL, ENOMEM});
    expect("a QP of more receive requests", try_qp(*pd, *cq, {1, most_requests + 1, 1, 1, 0}),
           {EINVAL, ENOMEM});
    expect("a QP of max_sge pieces", try_qp(*pd, *cq, {1, 1, most_pieces, most_pieces, 0}), {0});
    expect("a QP of more pieces", try_qp(*pd, *cq, {1, 1, most_pieces + 1, 1, 0}), {EINVAL, ENOMEM});
    expect("a QP of 512 bytes inline", try_qp(*pd, *cq, {1, 1, 1, 1, 512}), {0});
    expect("a QP of a megabyte inline", try_qp(*pd, *cq, {1, 1, 1, 1, 1 << 20}), {EINVAL, ENOMEM});
    expect("an SRQ of max_srq_wr", try_srq(*pd, static_cast<std::uint32_t>(device.max_srq_wr), 1), {0});
    expect("an SRQ of more", try_srq(*pd, static_cast<std::uint32_t>(device.max_srq_wr) + 1, 1),
           {EINVAL, ENOMEM});
    expect("an SRQ of no requests", try_srq(*pd, 0, 1), {EINVAL});
    full_queues(*pd, *cq);
}

/// Makes objects until one is refused; at least `wanted` must have been made. Destroys them all.
template <typename Make, typename Destroy>
void exhaust(const char* what, int wanted, Make make, Destroy destroy) {
    std::vector<decltype(make())> made;
    int number = 0;
    while (true) {
        auto object = make();
        if (object == nullptr) {
            number = errno;
            break;
        }
        made.push_back(object);
        if (static_cast<int>(made.size()) > wanted) break;
    }
    char text[128];
    std::snprintf(text, sizeof text, "%zu objects of kind %s (device says %d), then one more", made.size(),
                  what, wanted);
    // The caller holds some already.
    const bool enough = static_cast<int>(made.size()) >= wanted - 16;
    expect(text, number, {ENOMEM});
    expect("as many as the device says", enough ? 0 : ENOMEM, {0});
    for (auto* object : made) destroy(object);
}

void exhaust_all(ibv_context& context, bool all) {
    ibv_device_attr device{};
    check(ibv_query_device(&context, &device), "ibv_query_device");
    const ProtectionDomain pd = make_pd(context);
    const CompletionQueue cq = make_cq(context, 16);
    const Buffer buffer(MemoryKind::kPrivate, 4096);
    exhaust(
        "PD", device.max_pd, [&] { return ibv_alloc_pd(&context); }, ibv_dealloc_pd);
    if (all) {
        exhaust(
            "MW", device.max_mw, [&] { return ibv_alloc_mw(pd.get(), IBV_MW_TYPE_2); }, ibv_dealloc_mw);
        exhaust(
            "MR", device.max_mr, [&] { return ibv_reg_mr(pd.get(), buffer.data(), 64, kAllAccess); },
            ibv_dereg_mr);
        exhaust(
            "CQ", device.max_cq, [&] { return ibv_create_cq(&context, 1, nullptr, nullptr, 0); },
            ibv_destroy_cq);
        ibv_srq_init_attr shared{};
        shared.attr = {1, 1, 0};
        exhaust(
            "SRQ", device.max_srq, [&] { return ibv_create_srq(pd.get(), &shared); }, ibv_destroy_srq);
        ibv_qp_init_attr pair{};
        pair.send_cq = pair.recv_cq = cq.get();
        pair.qp_type = IBV_QPT_RC;
        pair.cap = {1, 1, 1, 1, 0};
        exhaust(
            "QP", device.max_qp, [&] { return ibv_create_qp(pd.get(), &pair); }, ibv_destroy_qp);
    }
    expect("a PD after all that", outcome(ibv_alloc_pd(&context), ibv_dealloc_pd), {0});
}

}  // namespace

int main(int argc, char** argv) {
    const char* which = argc > 1 ? argv[1] : "";
    try {
        const Context context = open_device("");
        if (std::strcmp(which, "memory") == 0)
            memory(*context);
        else if (std::strcmp(which, "sizes") == 0)
            sizes(*context);
        else if (std::strcmp(which, "exhaust") == 0)
            exhaust_all(*context, argc > 2 && std::strcmp(argv[2], "--all") == 0);
        else {
            std::fprintf(stderr, "usage: refusals memory|sizes|exhaust [--all]\n");
            return 2;
        }
    } catch (const std::exception& error) {
        std::fprintf(stderr, "refusals: %s\n", error.what());
        return 1;
    }
    return failures == 0 ? 0 : 1;
}
