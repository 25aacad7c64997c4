// What libibverbs finds when it loads the library: the driver's registration and the devices it matches.
//
// The engine's picture of sysfs gives each of its devices the modalias "uib:NAME", whatever the device is
// called.
#include "provider/driver.h"

#include <memory>

#include "provider/context.h"

namespace uib::provider {
namespace {

abi::VerbsDevice* alloc_device(abi::VerbsSysfsDevice*) {
    return std::make_unique<abi::VerbsDevice>().release();
}

void uninit_device(abi::VerbsDevice* device) {
    const std::unique_ptr<abi::VerbsDevice> owner(device);
}

const abi::VerbsMatchEntry kMatches[] = {
    {nullptr, {"uib:*"}, 0, 0, abi::kMatchModalias},
    {nullptr, {nullptr}, 0, 0, abi::kMatchEnd},
};

const abi::VerbsDeviceOps kDriver = {
    "uib",         0, UINT32_MAX, kMatches, nullptr, nullptr, open_context, import_context, alloc_device,
    uninit_device,
};

[[gnu::constructor]] void register_driver() {
    abi::verbs_register_driver_34(&kDriver);
}

}  // namespace
}  // namespace uib::provider
