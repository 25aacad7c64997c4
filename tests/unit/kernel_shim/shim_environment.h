// Tests that run under the shim themselves. The program starts itself again with LD_PRELOAD and a socket path
// in a directory of its own. A test uses libc's functions as any program would, with a fake engine and a tree
// in the same process.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "engine/daemon/device_tree/device_tree.h"
#include "tests/unit/kernel_shim/fake_engine.h"

namespace uib::test {

/// An engine with the devices uib0 and uib1.
struct ShimTest : testing::Test {
    ShimTest();
    const std::string socket;
    FakeEngine engine;
    daemon::DeviceTree tree;
};

/// What stands for the shim's view of /dev/infiniband/uverbs0 in the tests.
inline constexpr const char* kDevice = "/dev/infiniband/uverbs0";

}  // namespace uib::test
