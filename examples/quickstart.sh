#!/bin/bash
# From a machine that has nothing but Debian's base and apt to a bandwidth table: installs the packages, builds, starts an
# engine, runs an unmodified ib_send_bw between two processes over it, and stops the engine. Needs root or sudo only if
# packages are missing. Arguments go to both ib_send_bw processes (default: 64 KiB messages).
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

uib_install_packages
uib_say "Building $uib_root/build/release (the first time takes some minutes)"
uib_build_preset release "${uib_product[@]}"
uib_build=$uib_root/build/release

trap uib_stop_engine EXIT
uib_start_engine
uib=$uib_build/bin/uib
"$uib" status || uib_say "The engine gave no status."

port=${UIB_QUICKSTART_PORT:-18600}
uib_say "
Server: uib run -- ib_send_bw -d uib0 $*
Client: uib run -- ib_send_bw -d uib1 $* 127.0.0.1
"
timeout -k 2 60 "$uib" run -- ib_send_bw -d uib0 -p "$port" "$@" >"$uib_directory/server" 2>&1 </dev/null &
server=$!
if ! uib_wait_for_port "$port" ||
    ! timeout -k 2 60 "$uib" run -- ib_send_bw -d uib1 -p "$port" "$@" 127.0.0.1 </dev/null; then
    kill "$server" 2>/dev/null || true
    uib_say "ib_send_bw failed. Its server printed:"
    cat "$uib_directory/server" >&2
    exit 1
fi
wait "$server"
