#include "net/wire/length.h"

#include <gtest/gtest.h>

namespace uib::net {
namespace {

// Sizes of the extension headers by operation: transport-tables.md, sections 1 and 2.
TEST(Length, ExtensionHeadersOfEachOperation) {
    const auto rc = [](Operation operation) { return extension_bytes(opcode(Service::kRc, operation)); };
    EXPECT_EQ(rc(Operation::kSendFirst), 0U);
    EXPECT_EQ(rc(Operation::kSendOnlyImmediate), 4U);
    EXPECT_EQ(rc(Operation::kSendLastInvalidate), 4U);
    EXPECT_EQ(rc(Operation::kWriteFirst), 16U);
    EXPECT_EQ(rc(Operation::kWriteMiddle), 0U);
    EXPECT_EQ(rc(Operation::kWriteOnlyImmediate), 20U);
    EXPECT_EQ(rc(Operation::kReadRequest), 16U);
    EXPECT_EQ(rc(Operation::kReadResponseFirst), 4U);
    EXPECT_EQ(rc(Operation::kReadResponseMiddle), 0U);
    EXPECT_EQ(rc(Operation::kAcknowledge), 4U);
    EXPECT_EQ(rc(Operation::kAtomicAcknowledge), 12U);
    EXPECT_EQ(rc(Operation::kCompareSwap), 28U);
    EXPECT_EQ(extension_bytes(opcode(Service::kUd, Operation::kSendOnly)), 8U);
    EXPECT_EQ(extension_bytes(opcode(Service::kUd, Operation::kSendOnlyImmediate)), 12U);
}

}  // namespace
}  // namespace uib::net
