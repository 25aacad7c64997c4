#!/bin/bash
# Everything that must hold: the release build with all tests, the sanitizer builds with their share, formatting, clang-tidy.
# Does its own set-up (examples/lib.sh), needs no terminal. The last line is 'N passed, N failed, N skipped', summed over all
# steps; each skip is printed with its reason. The exit status is 0 only if nothing failed.
#
# tests/run.sh [STEP...]   steps: release asan tsan format tidy (default: all)
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../examples/lib.sh"
exec </dev/null
unset UIB_BUILD UIB_SOCKET UIB_CONFIG
cd "$uib_root" || exit 1

steps=("$@")
((${#steps[@]})) || steps=(release format tidy asan tsan)
results=$uib_root/build/results
mkdir -p "$results"
rm -f "$results"/*.xml "$results"/*.step

# One result of a step that is not ctest's: step NAME STATUS [WHY].
record() {
    local verdict=passed
    (($2)) && verdict=failed
    printf '%s\t%s\t%s\n' "$verdict" "$1" "${3:-}" >>"$results/steps.step"
    uib_say "[$(date +%T)] $1: $verdict"
}

# Sources of ours, those that git knows and those that are new.
sources() { git ls-files --cached --others --exclude-standard -- "$@" | sort -u | while read -r f; do [[ -f $f ]] && echo "$f"; done; }

build_and_test() {
    local preset=$1
    uib_say "[$(date +%T)] $preset: build"
    uib_build_preset "$preset"
    local status=$?
    record "build of preset $preset" "$status"
    ((status)) && return
    uib_say "[$(date +%T)] $preset: tests"
    # Thousands of unit tests that pass are a number in the summary.
    UIB_ENGINE_LOGS=$results ctest --preset "$preset" -j2 --no-tests=error --output-junit "$results/$preset.xml" |
        grep --line-buffered -vE '^ +Start +[0-9]+:|Test +#[0-9]+: [^i].* Passed +[0-9.]+ sec$' | sed -uE 's/\.{20,}/.../'
    [[ -s $results/$preset.xml ]] || record "ctest of preset $preset" 1 "no results"
}

check_format() {
    sources '*.cc' '*.h' '*.c' | xargs -r clang-format --dry-run -Werror
    record "clang-format" $?
}

check_tidy() {
    # Through the release tree's compile commands; tests of GoogleTest's macros say nothing new and cost the most.
    local files
    mapfile -t files < <(sources '*.cc' ':!tests/unit' ':!tests/simulation' ':!tests/conformance')
    [[ -f build/release/compile_commands.json ]] || uib_build_preset release || { record "clang-tidy" 1 "no build"; return; }
    local compiled=() file
    for file in "${files[@]}"; do
        grep -q "\"file\": \"$uib_root/$file\"" build/release/compile_commands.json && compiled+=("^$uib_root/$file\$")
    done
    run-clang-tidy -quiet -j2 -p build/release "${compiled[@]}" >"$results/tidy.log" 2>&1
    local status=$?
    ((status)) && grep -E -A6 'error:|warning:' "$results/tidy.log" | head -n 200
    record "clang-tidy of ${#compiled[@]} files" "$status"
}

# Where the machine with the kernel's own Soft-RoCE can be had, what it needs.
[[ -e ${UIB_PEER_VM:-$uib_root/../shared/tools/peer-vm/peer-vm} ]] && uib_packages+=(qemu-system-x86 make xz-utils zstd)
uib_install_packages || { record "packages" 1; steps=(); }
for step in "${steps[@]}"; do
    case $step in
        release | debug | asan | tsan) build_and_test "$step" ;;
        format) check_format ;;
        tidy) check_tidy ;;
        *) record "step $step" 1 "no such step" ;;
    esac
done
/usr/bin/python3 "$here/summary.py" "$results"
