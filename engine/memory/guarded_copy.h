// Access to mapped client memory that may vanish at any moment (a file that its owner truncates raises SIGBUS
// in whoever touches the mapping). The functions here fail instead.
//
// How: a process-wide handler of SIGBUS and SIGSEGV, and one record per thread of the access under way. A
// fault whose address belongs to that access jumps back to it; one in a FaultRange (fault_range.h) is
// mended; any other goes to the handler that was there before, or kills as it would have.
// install_fault_guard() must have been called; MappedSpace does it. Callable from any thread. No access takes
// a lock or a system call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace uib::memory {

/// Installs the handlers, the first time. Whoever installs handlers of these signals later must chain to
/// them.
void install_fault_guard();

/// memcpy. False when either side could not be touched; `to` is then written in part.
bool guarded_copy(void* to, const void* from, std::size_t n);

/// Sequentially consistent read-modify-write of an 8-byte aligned word; the value before, or nullopt when the
/// word could not be touched.
std::optional<std::uint64_t> guarded_compare_swap(std::uint64_t* at, std::uint64_t compare,
                                                  std::uint64_t swap);
std::optional<std::uint64_t> guarded_fetch_add(std::uint64_t* at, std::uint64_t add);
/// Sequentially consistent store of an 8-byte aligned word in one piece. False when it could not be touched.
bool guarded_store(std::uint64_t* at, std::uint64_t value);

}  // namespace uib::memory
