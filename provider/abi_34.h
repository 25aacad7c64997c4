// The provider ABI of libibverbs, private version 34, as of rdma-core 36 to 56.
//
// libibverbs loads a provider with dlopen and talks to it through these structures; the distributions do not
// package a header for them. The layouts below are facts of that ABI in our own words, and each size is
// checked. Only the members that uib uses carry their real type; operations that it does not offer are plain
// pointers and stay null, which makes libibverbs answer EOPNOTSUPP for them.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <ctime>

namespace uib::provider::abi {

struct VerbsMr {
    ibv_mr mr;
    int type;  ///< MrType
    int access;
};
enum MrType : int { kMrPlain = 0, kMrNull = 1, kMrImported = 2, kMrDmaBuf = 3 };
static_assert(sizeof(VerbsMr) == 56);

enum VerbsXrcdMask : std::uint32_t { kVerbsXrcdHandle = 1 << 0 };
struct VerbsXrcd {
    ibv_xrcd xrcd;
    std::uint32_t comp_mask;  ///< VerbsXrcdMask
    std::uint32_t handle;
};
static_assert(sizeof(VerbsXrcd) == 16);

enum VerbsQpMask : std::uint32_t { kVerbsQpXrcd = 1 << 0, kVerbsQpExtended = 1 << 1 };
struct VerbsQp {
    union {
        ibv_qp qp;
        ibv_qp_ex qp_ex;
    };
    std::uint32_t comp_mask;  ///< VerbsQpMask
    VerbsXrcd* xrcd;
};
static_assert(sizeof(VerbsQp) == 368);

struct VerbsCq {
    union {
        ibv_cq cq;
        ibv_cq_ex cq_ex;
    };
};
static_assert(sizeof(VerbsCq) == 288);

struct VerbsSrq {
    ibv_srq srq;
    ibv_srq_type type;
    VerbsXrcd* xrcd;
    ibv_cq* cq;
    std::uint32_t number;
};
static_assert(sizeof(VerbsSrq) == 160);

struct VerbsDm {
    ibv_dm dm;
    std::uint32_t handle;
};
static_assert(sizeof(VerbsDm) == 40);

struct ListNode {
    ListNode* next;
    ListNode* previous;
};

enum MatchKind : std::uint8_t { kMatchEnd = 0, kMatchModalias = 2 };
struct VerbsMatchEntry {
    void* driver_data;
    union {
        const char* modalias;  ///< a pattern for fnmatch()
        std::uint64_t driver_id;
    };
    std::uint16_t vendor;
    std::uint16_t device;
    std::uint8_t kind;  ///< MatchKind
};
static_assert(sizeof(VerbsMatchEntry) == 24);

struct VerbsSysfsDevice {
    ListNode entry;
    void* provider_data;
    const VerbsMatchEntry* match;
    unsigned flags;
    char sysfs_name[IBV_SYSFS_NAME_MAX];
    dev_t sysfs_cdev;
    char ibdev_name[IBV_SYSFS_NAME_MAX];
    char ibdev_path[IBV_SYSFS_PATH_MAX];
    char modalias[512];
    std::uint64_t node_guid;
    std::uint32_t driver_id;
    ibv_node_type node_type;
    int ibdev_index;
    std::uint32_t ports;
    std::uint32_t abi_version;
    std::timespec time_created;
};
static_assert(sizeof(VerbsSysfsDevice) == 992);

struct VerbsDevice;

struct VerbsDeviceOps {
    const char* name;
    std::uint32_t match_min_abi_version;
    std::uint32_t match_max_abi_version;
    const VerbsMatchEntry* match_table;
    const VerbsDeviceOps** static_providers;
    bool (*match_device)(VerbsSysfsDevice*);
    verbs_context* (*alloc_context)(ibv_device*, int cmd_fd, void* private_data);
    verbs_context* (*import_context)(ibv_device*, int cmd_fd);
    VerbsDevice* (*alloc_device)(VerbsSysfsDevice*);
    void (*uninit_device)(VerbsDevice*);
};
static_assert(sizeof(VerbsDeviceOps) == 72);

struct VerbsDevice {
    ibv_device device;
    const VerbsDeviceOps* ops;
    int reference_count;
    ListNode entry;
    VerbsSysfsDevice* sysfs;
    std::uint64_t core_support;
};
static_assert(sizeof(VerbsDevice) == 712);

/// An operation that uib leaves to libibverbs' own refusal.
using Unused = void (*)();

struct VerbsContextOps {
    int (*advise_mr)(ibv_pd*, ibv_advise_mr_advice, std::uint32_t flags, ibv_sge*, std::uint32_t count);
    ibv_dm* (*alloc_dm)(ibv_context*, ibv_alloc_dm_attr*);
    ibv_mw* (*alloc_mw)(ibv_pd*, ibv_mw_type);
    ibv_mr* (*alloc_null_mr)(ibv_pd*);
    ibv_pd* (*alloc_parent_domain)(ibv_context*, ibv_parent_domain_init_attr*);
    ibv_pd* (*alloc_pd)(ibv_context*);
    ibv_td* (*alloc_td)(ibv_context*, ibv_td_init_attr*);
    void (*async_event)(ibv_context*, ibv_async_event*);
    Unused attach_counters_point_flow;
    int (*attach_mcast)(ibv_qp*, const ibv_gid*, std::uint16_t lid);
    int (*bind_mw)(ibv_qp*, ibv_mw*, ibv_mw_bind*);
    int (*close_xrcd)(ibv_xrcd*);
    void (*cq_event)(ibv_cq*);
    ibv_ah* (*create_ah)(ibv_pd*, ibv_ah_attr*);
    Unused create_counters;
    ibv_cq* (*create_cq)(ibv_context*, int cqe, ibv_comp_channel*, int comp_vector);
    ibv_cq_ex* (*create_cq_ex)(ibv_context*, ibv_cq_init_attr_ex*);
    ibv_flow* (*create_flow)(ibv_qp*, ibv_flow_attr*);
    Unused create_flow_action_esp;
    ibv_qp* (*create_qp)(ibv_pd*, ibv_qp_init_attr*);
    ibv_qp* (*create_qp_ex)(ibv_context*, ibv_qp_init_attr_ex*);
    ibv_rwq_ind_table* (*create_rwq_ind_table)(ibv_context*, ibv_rwq_ind_table_init_attr*);
    ibv_srq* (*create_srq)(ibv_pd*, ibv_srq_init_attr*);
    ibv_srq* (*create_srq_ex)(ibv_context*, ibv_srq_init_attr_ex*);
    ibv_wq* (*create_wq)(ibv_context*, ibv_wq_init_attr*);
    int (*dealloc_mw)(ibv_mw*);
    int (*dealloc_pd)(ibv_pd*);
    int (*dealloc_td)(ibv_td*);
    int (*dereg_mr)(VerbsMr*);
    int (*destroy_ah)(ibv_ah*);
    Unused destroy_counters;
    int (*destroy_cq)(ibv_cq*);
    int (*destroy_flow)(ibv_flow*);
    Unused destroy_flow_action;
    int (*destroy_qp)(ibv_qp*);
    int (*destroy_rwq_ind_table)(ibv_rwq_ind_table*);
    int (*destroy_srq)(ibv_srq*);
    int (*destroy_wq)(ibv_wq*);
    int (*detach_mcast)(ibv_qp*, const ibv_gid*, std::uint16_t lid);
    void (*free_context)(ibv_context*);
    int (*free_dm)(ibv_dm*);
    int (*get_srq_num)(ibv_srq*, std::uint32_t*);
    ibv_dm* (*import_dm)(ibv_context*, std::uint32_t handle);
    ibv_mr* (*import_mr)(ibv_pd*, std::uint32_t handle);
    ibv_pd* (*import_pd)(ibv_context*, std::uint32_t handle);
    int (*modify_cq)(ibv_cq*, ibv_modify_cq_attr*);
    Unused modify_flow_action_esp;
    int (*modify_qp)(ibv_qp*, ibv_qp_attr*, int mask);
    Unused modify_qp_rate_limit;
    int (*modify_srq)(ibv_srq*, ibv_srq_attr*, int mask);
    int (*modify_wq)(ibv_wq*, ibv_wq_attr*);
    ibv_qp* (*open_qp)(ibv_context*, ibv_qp_open_attr*);
    ibv_xrcd* (*open_xrcd)(ibv_context*, ibv_xrcd_init_attr*);
    int (*poll_cq)(ibv_cq*, int count, ibv_wc*);
    int (*post_recv)(ibv_qp*, ibv_recv_wr*, ibv_recv_wr** bad);
    int (*post_send)(ibv_qp*, ibv_send_wr*, ibv_send_wr** bad);
    Unused post_srq_ops;
    int (*post_srq_recv)(ibv_srq*, ibv_recv_wr*, ibv_recv_wr** bad);
    int (*query_device_ex)(ibv_context*, const ibv_query_device_ex_input*, ibv_device_attr_ex*,
                           std::size_t size);
    Unused query_ece;
    int (*query_port)(ibv_context*, std::uint8_t port, ibv_port_attr*);
    int (*query_qp)(ibv_qp*, ibv_qp_attr*, int mask, ibv_qp_init_attr*);
    Unused query_qp_data_in_order;
    int (*query_rt_values)(ibv_context*, ibv_values_ex*);
    int (*query_srq)(ibv_srq*, ibv_srq_attr*);
    Unused read_counters;
    ibv_mr* (*reg_dm_mr)(ibv_pd*, ibv_dm*, std::uint64_t offset, std::size_t length, unsigned access);
    ibv_mr* (*reg_dmabuf_mr)(ibv_pd*, std::uint64_t offset, std::size_t length, std::uint64_t iova, int fd,
                             int access);
    ibv_mr* (*reg_mr)(ibv_pd*, void* address, std::size_t length, std::uint64_t iova, int access);
    int (*req_notify_cq)(ibv_cq*, int solicited_only);
    int (*rereg_mr)(VerbsMr*, int flags, ibv_pd*, void* address, std::size_t length, int access);
    int (*resize_cq)(ibv_cq*, int cqe);
    Unused set_ece;
    void (*unimport_dm)(ibv_dm*);
    void (*unimport_mr)(ibv_mr*);
    void (*unimport_pd)(ibv_pd*);
};
static_assert(sizeof(VerbsContextOps) == 608);
static_assert(sizeof(verbs_context) == 648);

extern "C" {
void verbs_register_driver_34(const VerbsDeviceOps* ops);
void* _verbs_init_and_alloc_context(ibv_device* device, int cmd_fd, std::size_t size, verbs_context* offset,
                                    std::uint32_t driver_id);
void verbs_set_ops(verbs_context* context, const VerbsContextOps* ops);
void verbs_uninit_context(verbs_context* context);
}

}  // namespace uib::provider::abi
