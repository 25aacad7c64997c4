# What the example and test scripts share: the one list of packages, the build, a private engine. To be sourced by bash.
#
# uib_root     the source tree
# uib_build    the build tree that is used (UIB_BUILD, else build/release)
# uib_socket   the private engine's socket, after uib_start_engine

uib_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
uib_build=${UIB_BUILD:-$uib_root/build/release}
uib_directory=
uib_engine_pid=

uib_packages=(
    # build
    g++ cmake ninja-build pkg-config
    libibverbs-dev librdmacm-dev libcli11-dev libspdlog-dev libfmt-dev nlohmann-json3-dev libtomlplusplus-dev
    libdpdk-dev libmnl-dev
    # test
    libgtest-dev libbenchmark-dev clang clang-format clang-tidy python3
    ibverbs-utils perftest rdmacm-utils python3-pyverbs tshark iproute2 procps util-linux
)

uib_say() { printf '%s\n' "$*" >&2; }

# Installs what is missing of uib_packages; does not call apt when nothing is.
uib_install_packages() {
    local missing=() package
    for package in "${uib_packages[@]}"; do
        [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
    done
    ((${#missing[@]})) || return 0
    local become=()
    if ((EUID != 0)); then
        if ! command -v sudo >/dev/null; then
            uib_say "These packages are missing, and there is no sudo to install them: ${missing[*]}"
            return 1
        fi
        become=(sudo)
    fi
    uib_say "Installing: ${missing[*]}"
    "${become[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q </dev/null >&2 &&
        "${become[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
            "${missing[@]}" </dev/null >&2
}

# What a program needs to run over uib, without the tests.
uib_product=(--target net/port/all engine/daemon/all engine/cli/all provider/all kernel_shim/all)

# uib_build_preset PRESET [BUILD OPTIONS]: configures and builds build/PRESET. One build at a time in a tree; the output is
# shown only when it fails.
uib_build_preset() {
    local preset=$1 log status=0
    shift
    mkdir -p "$uib_root/build"
    log=$uib_root/build/$preset.log
    (
        flock 9
        cd "$uib_root" || exit 1
        { cmake --preset "$preset" && cmake --build --preset "$preset" "$@"; } >"$log" 2>&1
    ) 9>"$uib_root/build/$preset.lock" || status=$?
    if ((status)); then
        uib_say "The build of $uib_root/build/$preset failed:"
        tail -n 60 "$log" >&2
    fi
    return "$status"
}

# uib_start_engine [ARGUMENTS]: starts uibd of uib_build on a socket of its own and waits until it is ready. The engine ends
# with this shell, also when that is killed.
uib_start_engine() {
    uib_directory=$(mktemp -d "${TMPDIR:-/tmp}/uib.XXXXXX") || return 1
    uib_socket=$uib_directory/engine.sock
    mkfifo "$uib_directory/ready"
    local arguments=(--socket "$uib_socket" --log-level "${UIB_LOG_LEVEL:-warning}" "$@")
    [[ -n ${UIB_CONFIG:-} ]] && arguments+=(--config "$UIB_CONFIG")
    setpriv --pdeathsig TERM -- "$uib_build/bin/uibd" "${arguments[@]}" --ready-fd 8 \
        8>"$uib_directory/ready" </dev/null &
    uib_engine_pid=$!
    local answer
    if ! IFS= read -r -t 20 -n 1 answer <"$uib_directory/ready"; then
        uib_say "The engine did not start ($uib_build/bin/uibd ${arguments[*]})."
        uib_stop_engine
        return 1
    fi
    export UIB_SOCKET=$uib_socket
}

uib_stop_engine() {
    if [[ -n $uib_engine_pid ]]; then
        kill "$uib_engine_pid" 2>/dev/null
        wait "$uib_engine_pid" 2>/dev/null
        uib_engine_pid=
    fi
    [[ -n $uib_directory ]] && rm -rf "$uib_directory"
    uib_directory=
}

# uib_wait_for_port PORT: waits up to 10 s until somebody listens on the TCP port.
uib_wait_for_port() {
    local hex try
    hex=$(printf ':%04X' "$1")
    for ((try = 0; try < 200; try++)); do
        awk -v port="$hex\$" '$2 ~ port && $4 == "0A" { found = 1 } END { exit !found }' \
            /proc/net/tcp $([[ -e /proc/net/tcp6 ]] && echo /proc/net/tcp6) && return 0
        sleep 0.05
    done
    uib_say "Nobody listens on port $1."
    return 1
}
