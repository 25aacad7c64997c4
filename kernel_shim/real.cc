#include "kernel_shim/real.h"

#include "kernel_shim/fd_table.h"
#include "kernel_shim/route.h"

namespace uib::shim {

constinit RealFunctions real;

namespace {

[[gnu::constructor]] void prepare() {
    const KeepErrno keep;
#define UIB_REAL_RESOLVE(name, ...) real.name.get();
    UIB_REAL_FUNCTIONS(UIB_REAL_RESOLVE)
#undef UIB_REAL_RESOLVE
    engine_paths();
    watch_forks();
}

}  // namespace
}  // namespace uib::shim
