#!/bin/bash
# with-uib.sh COMMAND [ARGUMENTS]: starts a private engine from the build tree, runs COMMAND where unmodified RDMA programs see
# its devices, stops the engine, and exits with COMMAND's status. Needs no privilege.
#
# UIB_CONFIG=FILE   the engine's configuration
# UIB_BUILD=DIR     the build tree; the default, build/release, is built when needed
# UIB_LOG_LEVEL     how much the engine says (default warning)
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 125

if (($# == 0)); then
    uib_say "usage: $0 COMMAND [ARGUMENTS]"
    exit 125
fi
if [[ -z ${UIB_BUILD:-} ]]; then
    uib_build_preset release "${uib_product[@]}" || exit 125
fi
trap uib_stop_engine EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
uib_start_engine || exit 125
"$uib_build/bin/uib" run -- "$@"
exit $?
