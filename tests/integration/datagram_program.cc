// One datagram from one program to another, by GIDs given on the command line: to a queue pair or to a
// multicast group.
//
//   datagram_program receive DEVICE GID-INDEX [GROUP [LID]]   attaches to the group; prints "ready QPN", then
//                                                             what came: "got BYTES HEADER DATA", the header
//                                                             (40 bytes) in hexadecimal
//   datagram_program send DEVICE GID-INDEX GID QPN [LID]      prints "sent"; GID "none": without a GRH
//   datagram_program refused DEVICE GID-INDEX GID             prints errno of ibv_create_ah and of the way to
//                                                             RTR
//
// LIDs are for InfiniBand ports: a group's multicast LID, or the port's.
// Exits with 1 and a line of text where something fails, also when nothing comes within ten seconds.
#include <arpa/inet.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "examples/kit/memory.h"
#include "examples/kit/verbs.h"

namespace {

using namespace uib::kit;

constexpr std::uint32_t kKey = 0x01020304;
constexpr std::size_t kHeader = 40;
constexpr std::size_t kData = 100;
constexpr int kWaitSeconds = 10;

std::uint32_t number(const char* text) {
    return static_cast<std::uint32_t>(std::strtoul(text, nullptr, 0));
}

ibv_gid gid_of(const char* text) {
    ibv_gid gid{};
    if (::inet_pton(AF_INET6, text, gid.raw) != 1) throw Error(std::string("not a GID: ") + text);
    return gid;
}

struct Port {
    explicit Port(const char* device)
        : context(open_device(device)),
          pd(make_pd(*context)),
          cq(make_cq(*context, 8)),
          memory(MemoryKind::kPrivate, 4096),
          region(register_memory(*pd, memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE)),
          qp(make_qp(*pd, *cq, IBV_QPT_UD, {})) {
        ibv_qp_attr attributes{};
        attributes.qp_state = IBV_QPS_INIT;
        attributes.port_num = 1;
        attributes.qkey = kKey;
        check(ibv_modify_qp(qp.get(), &attributes,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
              "to INIT");
        attributes.qp_state = IBV_QPS_RTR;
        check(ibv_modify_qp(qp.get(), &attributes, IBV_QP_STATE), "to RTR");
        attributes.qp_state = IBV_QPS_RTS;
        check(ibv_modify_qp(qp.get(), &attributes, IBV_QP_STATE | IBV_QP_SQ_PSN), "to RTS");
    }

    ibv_wc wait() const {
        ibv_wc completion{};
        const std::time_t end = std::time(nullptr) + kWaitSeconds;
        while (ibv_poll_cq(cq.get(), 1, &completion) == 0)
            if (std::time(nullptr) > end) throw Error("nothing came");
        if (completion.status != IBV_WC_SUCCESS) throw Error(ibv_wc_status_str(completion.status));
        return completion;
    }

    Context context;
    ProtectionDomain pd;
    CompletionQueue cq;
    Buffer memory;
    Region region;
    QueuePair qp;
};

ibv_ah_attr path_to(const ibv_gid& gid, int index) {
    ibv_ah_attr path{};
    path.is_global = 1;
    path.grh.dgid = gid;
    path.grh.sgid_index = static_cast<std::uint8_t>(index);
    path.grh.hop_limit = 33;
    path.grh.traffic_class = 0x48;
    path.port_num = 1;
    return path;
}

void receive(const Port& port, const char* group, std::uint16_t lid) {
    if (group != nullptr) {
        const ibv_gid gid = gid_of(group);
        check(ibv_attach_mcast(port.qp.get(), &gid, lid), "ibv_attach_mcast");
    }
    ibv_sge piece{reinterpret_cast<std::uintptr_t>(port.memory.data()), kHeader + kData, port.region->lkey};
    ibv_recv_wr request{1, nullptr, &piece, 1};
    ibv_recv_wr* bad = nullptr;
    check(ibv_post_recv(port.qp.get(), &request, &bad), "ibv_post_recv");
    std::printf("ready %u\n", port.qp->qp_num);
    std::fflush(stdout);
    const ibv_wc completion = port.wait();
    if ((completion.wc_flags & IBV_WC_GRH) == 0) throw Error("no GRH");
    std::printf("got %u ", completion.byte_len);
    for (std::size_t i = 0; i < kHeader; ++i)
        std::printf("%02x", std::to_integer<unsigned>(port.memory.data()[i]));
    std::printf(" %.*s\n", static_cast<int>(completion.byte_len - kHeader),
                reinterpret_cast<const char*>(port.memory.data() + kHeader));
}

void send(const Port& port, int index, const char* to, std::uint32_t qp_number, std::uint16_t lid) {
    ibv_ah_attr path{};
    path.port_num = 1;
    if (std::strcmp(to, "none") != 0) path = path_to(gid_of(to), index);
    path.dlid = lid;
    const AddressHandle ah(ibv_create_ah(port.pd.get(), &path));
    if (ah == nullptr) fail("ibv_create_ah", errno);
    std::memset(port.memory.data(), 'u', kData);
    ibv_sge piece{reinterpret_cast<std::uintptr_t>(port.memory.data()), kData, port.region->lkey};
    ibv_send_wr request{};
    request.sg_list = &piece;
    request.num_sge = 1;
    request.opcode = IBV_WR_SEND;
    request.send_flags = IBV_SEND_SIGNALED;
    request.wr.ud.ah = ah.get();
    request.wr.ud.remote_qpn = qp_number;
    request.wr.ud.remote_qkey = kKey;
    ibv_send_wr* bad = nullptr;
    check(ibv_post_send(port.qp.get(), &request, &bad), "ibv_post_send");
    port.wait();
    std::puts("sent");
}

void refused(const Port& port, int index, const char* to) {
    ibv_ah_attr path = path_to(gid_of(to), index);
    const AddressHandle ah(ibv_create_ah(port.pd.get(), &path));
    const int ah_error = ah == nullptr ? errno : 0;
    const QueuePair qp = make_qp(*port.pd, *port.cq, IBV_QPT_RC, {});
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = 1;
    check(ibv_modify_qp(qp.get(), &attributes,
                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
          "RC to INIT");
    attributes.qp_state = IBV_QPS_RTR;
    attributes.path_mtu = IBV_MTU_256;
    attributes.dest_qp_num = 100;
    attributes.ah_attr = path;
    const int error = ibv_modify_qp(qp.get(), &attributes,
                                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                        IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    std::printf("refused %d %d\n", ah_error, error);
}

}  // namespace

int main(int argc, char** argv) {
    try {
        if (argc < 4) throw Error("usage: receive|send|refused DEVICE GID-INDEX [GID [QPN]] [LID]");
        const std::string what = argv[1];
        const Port port(argv[2]);
        const int index = std::atoi(argv[3]);
        if (what == "receive")
            receive(port, argc > 4 ? argv[4] : nullptr,
                    static_cast<std::uint16_t>(argc > 5 ? number(argv[5]) : 0));
        else if (what == "send" && argc > 5)
            send(port, index, argv[4], number(argv[5]),
                 static_cast<std::uint16_t>(argc > 6 ? number(argv[6]) : 0));
        else if (what == "refused" && argc > 4)
            refused(port, index, argv[4]);
        else
            throw Error("bad arguments");
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "datagram_program: %s\n", error.what());
        return 1;
    }
}
