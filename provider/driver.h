// The table of operations that the provider gives to libibverbs.
#pragma once

#include "provider/abi_34.h"

namespace uib::provider {

const abi::VerbsContextOps& context_operations();

}  // namespace uib::provider
