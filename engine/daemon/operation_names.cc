#include "engine/daemon/operation_names.h"

#include <array>
#include <cstddef>

namespace uib::daemon {

namespace {

constexpr std::array kNames = {
    "hello",          "status",         "query_device",     "query_port",
    "import_context", "alloc_pd",       "dealloc_pd",       "import_pd",
    "reg_mr",         "rereg_mr",       "dereg_mr",         "import_mr",
    "alloc_mw",       "dealloc_mw",     "alloc_dm",         "free_dm",
    "import_dm",      "create_channel", "destroy_channel",  "create_cq",
    "resize_cq",      "modify_cq",      "destroy_cq",       "create_srq",
    "modify_srq",     "query_srq",      "destroy_srq",      "create_qp",
    "modify_qp",      "query_qp",       "destroy_qp",       "attach_mcast",
    "detach_mcast",   "alloc_staging",  "open_xrcd",        "close_xrcd",
    "open_qp",        "create_flow",    "destroy_flow",     "create_wq",
    "modify_wq",      "destroy_wq",     "create_rwq_table", "destroy_rwq_table",
    "create_hash_qp", "start_capture",  "stop_capture",     "add_fault",
    "remove_fault",   "list_faults",
};
static_assert(kNames.size() + 1 == static_cast<std::size_t>(ipc::Operation::kOperationEnd));

}  // namespace

const char* operation_name(ipc::Operation operation) {
    const std::size_t index = static_cast<std::size_t>(operation) - 1;
    return index < kNames.size() ? kNames[index] : "?";
}

}  // namespace uib::daemon
