// The layouts that libibverbs expects. Sizes are checked at compile time in abi_34.h; here the places that
// matter.
#include <gtest/gtest.h>

#include <cstddef>

#include "provider/abi_34.h"
#include "provider/cq.h"
#include "provider/driver.h"
#include "provider/qp.h"
#include "provider/wq.h"

namespace uib::provider {
namespace {

TEST(Abi, operations_are_in_libibverbs_places) {
    using Ops = abi::VerbsContextOps;
    EXPECT_EQ(offsetof(Ops, async_event), 7 * sizeof(void*));
    EXPECT_EQ(offsetof(Ops, create_qp), 19 * sizeof(void*));
    EXPECT_EQ(offsetof(Ops, destroy_qp), 34 * sizeof(void*));
    EXPECT_EQ(offsetof(Ops, free_context), 39 * sizeof(void*));
    EXPECT_EQ(offsetof(Ops, poll_cq), 53 * sizeof(void*));
    EXPECT_EQ(offsetof(Ops, query_device_ex), 58 * sizeof(void*));
    EXPECT_EQ(offsetof(Ops, unimport_pd), 75 * sizeof(void*));
}

TEST(Abi, sysfs_device_has_its_names_where_libibverbs_writes_them) {
    EXPECT_EQ(offsetof(abi::VerbsSysfsDevice, sysfs_name), 36U);
    EXPECT_EQ(offsetof(abi::VerbsSysfsDevice, ibdev_name), 112U);
    EXPECT_EQ(offsetof(abi::VerbsSysfsDevice, modalias), 432U);
}

TEST(Abi, objects_begin_with_the_programs_handle) {
    // Compared by address: offsetof does not take types with private members.
    alignas(Cq) std::byte cq_place[sizeof(Cq)];
    alignas(Qp) std::byte qp_place[sizeof(Qp)];
    EXPECT_EQ(static_cast<void*>(&reinterpret_cast<Cq*>(cq_place)->verbs), cq_place);
    EXPECT_EQ(static_cast<void*>(&reinterpret_cast<Qp*>(qp_place)->verbs), qp_place);
    alignas(Wq) std::byte wq_place[sizeof(Wq)];
    EXPECT_EQ(static_cast<void*>(&reinterpret_cast<Wq*>(wq_place)->verbs), wq_place);
}

TEST(Abi, every_advertised_operation_is_there) {
    const abi::VerbsContextOps& ops = context_operations();
    EXPECT_NE(ops.post_send, nullptr);
    EXPECT_NE(ops.poll_cq, nullptr);
    EXPECT_NE(ops.free_context, nullptr);
    EXPECT_NE(ops.create_wq, nullptr);
    EXPECT_EQ(ops.create_counters, nullptr) << "libibverbs refuses what is not there";
}

}  // namespace
}  // namespace uib::provider
