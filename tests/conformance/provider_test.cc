// Rows about what the verbs layer reports.
#include "provider/device.h"
#include "tests/conformance/rows.h"
#include "tests/unit/provider/fake_engine.h"

namespace uib::conformance {
namespace {

// Atomic with respect to the other queue pairs of the adapter (o9-17), and no more is claimed.
TEST(VerbsRows, o9_18_atomics_are_reported_as_atomic_within_the_adapter) {
    ROWS("o9-18");
    provider::test::OpenedContext opened;
    ibv_device_attr_ex attributes{};
    ASSERT_EQ(provider::query_device_ex(opened.verbs(), nullptr, &attributes, sizeof attributes), 0);
    EXPECT_EQ(attributes.orig_attr.atomic_cap, IBV_ATOMIC_HCA);
    EXPECT_EQ(attributes.pci_atomic_caps.fetch_add, 0);
    EXPECT_EQ(attributes.pci_atomic_caps.compare_swap, 0);
}

}  // namespace
}  // namespace uib::conformance
