#include "examples/kit/verbs.h"

#include <cerrno>
#include <cstring>

namespace uib::kit {

namespace {

template <typename Owner, typename T>
Owner owned(T* object, const char* what) {
    if (object == nullptr) fail(what, errno);
    return Owner(object);
}

ibv_port_attr port_of(ibv_context& context) {
    ibv_port_attr port{};
    check(ibv_query_port(&context, 1, &port), "ibv_query_port");
    return port;
}

ibv_ah_attr path_to(const Address& peer) {
    ibv_ah_attr path{};
    path.dlid = peer.lid;
    path.port_num = 1;
    if (peer.global != 0) {
        path.is_global = 1;
        path.grh.hop_limit = 64;
        std::memcpy(path.grh.dgid.raw, peer.gid, sizeof peer.gid);
    }
    return path;
}

void to_init(ibv_qp& qp, int access) {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = 1;
    int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    if (qp.qp_type == IBV_QPT_UD) {
        attributes.qkey = kDatagramKey;
        mask |= IBV_QP_QKEY;
    } else {
        attributes.qp_access_flags = static_cast<unsigned>(access);
        mask |= IBV_QP_ACCESS_FLAGS;
    }
    check(ibv_modify_qp(&qp, &attributes, mask), "ibv_modify_qp to INIT");
}

void to_rtr(ibv_qp& qp, const Address& peer, int path_mtu) {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_RTR;
    int mask = IBV_QP_STATE;
    if (qp.qp_type != IBV_QPT_UD) {
        attributes.path_mtu =
            path_mtu != 0 ? static_cast<ibv_mtu>(path_mtu) : port_of(*qp.context).active_mtu;
        attributes.dest_qp_num = peer.qp_number;
        attributes.rq_psn = peer.psn;
        attributes.ah_attr = path_to(peer);
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    }
    if (qp.qp_type == IBV_QPT_RC) {
        attributes.max_dest_rd_atomic = 16;
        attributes.min_rnr_timer = 12;
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    }
    check(ibv_modify_qp(&qp, &attributes, mask), "ibv_modify_qp to RTR");
}

void to_rts(ibv_qp& qp, const Address& own) {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_RTS;
    attributes.sq_psn = own.psn;
    int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (qp.qp_type == IBV_QPT_RC) {
        attributes.timeout = 14;
        attributes.retry_cnt = 7;
        attributes.rnr_retry = 7;
        attributes.max_rd_atomic = 16;
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    }
    check(ibv_modify_qp(&qp, &attributes, mask), "ibv_modify_qp to RTS");
}

}  // namespace

void fail(const std::string& what, int number) {
    throw Error(what + ": " + std::strerror(number));
}

Context open_device(const std::string& name) {
    int count = 0;
    ibv_device** list = ibv_get_device_list(&count);
    if (list == nullptr) fail("ibv_get_device_list", errno);
    const std::unique_ptr<ibv_device*, Closer<ibv_free_device_list>> owner(list);
    for (int i = 0; i < count; ++i)
        if (name.empty() || name == ibv_get_device_name(list[i]))
            return owned<Context>(ibv_open_device(list[i]), "ibv_open_device");
    throw Error(name.empty() ? "there is no RDMA device" : "there is no RDMA device " + name);
}

ProtectionDomain make_pd(ibv_context& context) {
    return owned<ProtectionDomain>(ibv_alloc_pd(&context), "ibv_alloc_pd");
}

Channel make_channel(ibv_context& context) {
    return owned<Channel>(ibv_create_comp_channel(&context), "ibv_create_comp_channel");
}

CompletionQueue make_cq(ibv_context& context, int entries, ibv_comp_channel* channel) {
    return owned<CompletionQueue>(ibv_create_cq(&context, entries, nullptr, channel, 0), "ibv_create_cq");
}

Region register_memory(ibv_pd& pd, void* address, std::size_t bytes, int access) {
    return owned<Region>(ibv_reg_mr(&pd, address, bytes, access), "ibv_reg_mr");
}

QueuePair make_qp(ibv_pd& pd, ibv_cq& cq, ibv_qp_type type, const QueueSizes& sizes) {
    ibv_qp_init_attr attributes{};
    attributes.send_cq = &cq;
    attributes.recv_cq = &cq;
    attributes.qp_type = type;
    attributes.cap.max_send_wr = sizes.send_requests;
    attributes.cap.max_recv_wr = sizes.receive_requests;
    attributes.cap.max_send_sge = sizes.send_pieces;
    attributes.cap.max_recv_sge = sizes.receive_pieces;
    attributes.cap.max_inline_data = sizes.inline_bytes;
    return owned<QueuePair>(ibv_create_qp(&pd, &attributes), "ibv_create_qp");
}

Address address_of(ibv_qp& qp, std::uint32_t psn) {
    Address address{};
    address.qp_number = qp.qp_num;
    address.psn = psn & 0xFFFFFF;
    address.lid = port_of(*qp.context).lid;
    address.global = address.lid == 0 ? 1 : 0;
    ibv_gid gid{};
    if (ibv_query_gid(qp.context, 1, 0, &gid) == 0) std::memcpy(address.gid, gid.raw, sizeof address.gid);
    return address;
}

void connect_qp(ibv_qp& qp, const Address& own, const Address& peer, int access, int path_mtu) {
    to_init(qp, access);
    to_rtr(qp, peer, path_mtu);
    to_rts(qp, own);
}

AddressHandle make_ah(ibv_pd& pd, const Address& peer) {
    ibv_ah_attr path = path_to(peer);
    return owned<AddressHandle>(ibv_create_ah(&pd, &path), "ibv_create_ah");
}

std::uint32_t mtu_bytes(ibv_context& context) {
    return 128U << static_cast<unsigned>(port_of(context).active_mtu);
}

}  // namespace uib::kit
