// What the device says of itself.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

namespace uib::provider {

int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* attributes, std::size_t size);
int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attributes);
int query_rt_values(ibv_context* context, ibv_values_ex* values);

}  // namespace uib::provider
