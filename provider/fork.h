// Fork. As with a kernel's adapter, a child inherits its parent's contexts and may make control calls on
// them; and as there, the parent's queues stay the parent's.
//
//   session   The child's first control call opens one of its own, which joins the parent's context in the
//   engine
//             (ipc::Operation::kImportContext): the child has its own arena, doorbells, monitor thread and
//             asynchronous-event pipe, and the engine reaches the child's memory, not the parent's, for what
//             the child registers. Nothing is opened for a child that makes no call, such as one that calls
//             exec.
//   objects   What the child makes is its session's and goes with it. What it inherited is there for control
//   calls
//             by the same handles (a region on the parent's PD; destroying the parent's objects destroys
//             them), but posting to and polling of inherited queues fails with EIO, as does their resize: two
//             processes on one ring would ruin it. New queues on inherited CQs, SRQs or channels are refused
//             (EINVAL). An inherited region's bytes are those in the parent, which the engine fetches.
//   parent    Is not disturbed by a child that exits, is killed, closes the device or calls exec. Its death
//   takes
//             its objects along, but for those that the child's objects use; a child that has made no call by
//             then has no context to join any more: it finds the engine dead.
//
// A child of the child does the same with the session that it inherited. Processes made by clone() without
// fork()'s handlers are not noticed.
//
// Before a fork the locks of every context are taken (Context::before_fork), so that the child finds all
// tables whole. The locks of queues are not, since their holders may wait for one of those; the child frees
// them, having no other use of the queues than to drop them.
#pragma once

namespace uib::provider {

class Context;

/// From now on the context is told of forks. Once a context.
void enter_fork_registry(Context* context);
/// No effect if it was not entered.
void leave_fork_registry(Context* context);

}  // namespace uib::provider
