#include "engine/verbs/context.h"

namespace uib::verbs {

ObjectCounts& ObjectCounts::operator+=(const ObjectCounts& other) {
    pd += other.pd;
    mr += other.mr;
    mw += other.mw;
    cq += other.cq;
    qp += other.qp;
    srq += other.srq;
    channel += other.channel;
    dm += other.dm;
    xrcd += other.xrcd;
    wq += other.wq;
    rwq_table += other.rwq_table;
    return *this;
}

ObjectCounts Context::counts() {
    ObjectCounts counts;
    counts.pd = pds_.live();
    counts.mr = regions_.live();
    counts.mw = windows_.live();
    counts.cq = cqs_.live();
    counts.qp = qps_.live();
    counts.srq = srqs_.live();
    counts.channel = channels_.live();
    counts.dm = dms_.live();
    counts.xrcd = xrcds_.live();
    counts.wq = wqs_.live();
    counts.rwq_table = rwq_tables_.live();
    return counts;
}

bool Context::drop_queues_of(Client& client) {
    bool dropped = false;
    const auto drop = [&](auto& table, std::uint32_t handle) {
        table.take(handle);
        dropped = true;
    };
    flows_.for_each([&](std::uint32_t handle, FlowObject& flow) {
        if (flow.rule.qp->init().client == &client) drop(flows_, handle);
    });
    qps_.for_each([&](std::uint32_t handle, QpHandle& qp) {
        if (qp.holder().client == &client) drop(qps_, handle);
    });
    rwq_tables_.for_each([&](std::uint32_t handle, const RwqTable& table) {
        if (&table.owner() == &client && table.uses == 0) drop(rwq_tables_, handle);
    });
    wqs_.for_each([&](std::uint32_t handle, QpHandle& wq) {
        if (wq.holder().client == &client && wq.qp().rwq_entries == 0) drop(wqs_, handle);
    });
    srqs_.for_each([&](std::uint32_t handle, SharedReceiveQueue& srq) {
        if (&srq.slots().client() == &client && srq.uses == 0) drop(srqs_, handle);
    });
    xrcds_.for_each([&](std::uint32_t handle, XrcdObject& xrcd) {
        if (xrcd.owner == &client && xrcd.uses == 0) drop(xrcds_, handle);
    });
    cqs_.for_each([&](std::uint32_t handle, CompletionQueue& cq) {
        if (&cq.client() != &client || cq.uses != 0) return;
        adapter_.forget(cq);
        drop(cqs_, handle);
    });
    channels_.for_each([&](std::uint32_t handle, Channel& channel) {
        if (channel.client == &client && channel.uses == 0) drop(channels_, handle);
    });
    return dropped;
}

bool Context::drop_memory_of(Client& client) {
    bool dropped = false;
    windows_.for_each([&](std::uint32_t handle, WindowObject& window) {
        if (window.owner != &client) return;
        dealloc_mw(handle);
        dropped = true;
    });
    regions_.for_each([&](std::uint32_t handle, RegionObject& region) {
        if (region.owner != &client) return;
        dropped |= dereg_mr(handle) == 0;
    });
    dms_.for_each([&](std::uint32_t handle, DeviceMemory& dm) {
        if (dm.owner == &client) dropped |= free_dm(handle) == 0;
    });
    pds_.for_each([&](std::uint32_t handle, Pd& pd) {
        if (pd.owner == &client) dropped |= dealloc_pd(handle) == 0;
    });
    return dropped;
}

void Context::remove_client(Client& client) {
    while (drop_queues_of(client) || drop_memory_of(client)) {
    }
    // What another client's objects still use belongs to nobody from now on and goes with a later call.
    regions_.for_each([&](std::uint32_t, RegionObject& region) {
        if (region.owner == &client) region.owner = nullptr;
    });
    regions_.for_each([&](std::uint32_t handle, RegionObject& region) {
        if (region.owner == nullptr) dereg_mr(handle);
    });
    dms_.for_each([&](std::uint32_t handle, DeviceMemory& dm) {
        if (dm.owner == &client) dm.owner = nullptr;
        if (dm.owner == nullptr) free_dm(handle);
    });
    pds_.for_each([&](std::uint32_t handle, Pd& pd) {
        if (pd.owner == &client) pd.owner = nullptr;
        if (pd.owner == nullptr) dealloc_pd(handle);
    });
}

void Context::tend_channels(Client& client) {
    channels_.for_each([&](std::uint32_t handle, Channel& channel) {
        if (channel.client != &client) return;
        if (channel.pipe.has_backlog() && !channel.pipe.retry()) client.note_backlog();
        if (channel.uses == 0 && channel.pipe.reader_gone()) channels_.take(handle);
    });
}

}  // namespace uib::verbs
