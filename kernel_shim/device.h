// A device of the engine as the program sees it: a descriptor that is a connection to the engine and looks
// like the character device /dev/infiniband/uverbsN.
//
// The connection's own end is bound to an abstract name that says N. So a descriptor is known for what it is
// wherever it comes from (SCM_RIGHTS, exec, an un-hooked dup), and an entry of the table can be checked
// against the descriptor itself.
#pragma once

#include <sys/stat.h>

namespace uib::shim {

/// Connects to the engine. Returns the descriptor, or -1 with errno: ENODEV when no engine answers (the first
/// time in a process a line on stderr says what to do), else what the socket calls gave.
int open_device(unsigned device, int open_flags);

/// Tells once, on stderr, that there is no engine.
void tell_that_no_engine_answers();

/// N of the uverbsN that the descriptor is, by its socket's name, or -1. Keeps the table true and errno as it
/// is.
int recognise(int fd);

/// Device number of uverbsN.
dev_t device_id(unsigned device);

}  // namespace uib::shim
