#!/usr/bin/python3
"""The ibverbs-utils pingpongs, unmodified: RC, UC, UD and SRQ, polled and with events, bytes checked (-c), sizes 1 to 1 MiB,
every MTU, and RC's variants: new post-send API, on-demand paging with and without prefetch, device memory, timestamps.

  --quick     5000 exchanges a run (default; fewer for large messages)
  --full      100000 exchanges of the default size, every size and MTU
  --user N    run engine and tools as this uid (needs root)
  --nobody    as --user 65534; skipped when not started as root
"""

import argparse
import os
import re
import subprocess

import uibtest
from uibtest import Engine, expect, say, unique_port

MTUS = (256, 512, 1024, 2048, 4096)
SIZES = (1, 7, 64, 191, 192, 193, 1000, 1024, 1025, 4095, 4096, 4097, 65536, 262144, 1048575, 1048576)
QUICK_SIZES = (1, 192, 193, 4097, 65536, 1048576)


def takes(tool, letter):
    text = subprocess.run([tool, "--help"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20)
    return f"  -{letter}," in text.stdout + text.stderr


def count_for(size, full):
    """Exchanges of one run: bounded by bytes, so that large messages end in time."""
    most = 100000 if full else 5000
    bytes_at_most = 8 << 30 if full else 256 << 20
    return max(100, min(most, bytes_at_most // (2 * max(size, 1))))


def runs(full):
    """(tool, arguments) of every run."""
    check = {kind: ["-c"] if takes(f"ibv_{kind}_pingpong", "c") else [] for kind in ("rc", "uc", "ud", "srq")}
    chosen = []
    for kind in ("rc", "uc", "ud", "srq"):
        tool = f"ibv_{kind}_pingpong"
        for events in ([], ["-e"]):
            iterations = 100000 if full else 5000
            if kind == "srq":
                iterations //= 16  # counted for each of its 16 QPs
            chosen.append((tool, check[kind] + events + ["-n", str(iterations)]))
            sizes = SIZES if full else QUICK_SIZES
            if kind == "ud":
                sizes = [1, 64, 193, 1024, 2048, 4096]
            for size in sizes:
                # UD's data buffer is one MTU at most; SRQ posts 500 receives of the whole size.
                iterations = count_for(size, full) // (16 if kind == "srq" else 1)
                chosen.append((tool, check[kind] + events + ["-s", str(size), "-n", str(max(iterations, 50))]))
        if kind != "ud":
            for mtu in MTUS:
                iterations = count_for(65536, full) // (16 if kind == "srq" else 1)
                chosen.append((tool, check[kind] + ["-m", str(mtu), "-s", "65536", "-n", str(iterations)]))
    # Not -t with -e: that form gives up when an event's completion was polled with the one before it, as may happen with
    # any adapter (a completion that comes between arming and polling owes an event, IBA 11.4.2.2, and is polled at once).
    for variant in (["-N"], ["-o"], ["-o", "-P"], ["-j"], ["-t"], ["-N", "-e"], ["-j", "-N"], ["-N", "-t"]):
        if all(takes("ibv_rc_pingpong", letter[1]) for letter in variant):
            chosen.append(("ibv_rc_pingpong", check["rc"] + variant + ["-n", "100000" if full else "5000"]))
    return chosen


def trouble(text):
    found = re.search(r"(?im)^.*(invalid data|failed|couldn't|error).*$", text)
    return found.group(0) if found else None


def test():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--user", type=int)
    parser.add_argument("--nobody", action="store_true")
    parser.add_argument("--few", action="store_true", help="one run a tool")
    arguments = parser.parse_args()
    uibtest.need_tools("ibv_rc_pingpong")
    user = arguments.user
    if arguments.nobody:
        if os.geteuid() != 0:
            uibtest.skip("not started as root: the other tests already run as an ordinary user")
        user = 65534
    chosen = runs(arguments.full)
    if arguments.few:
        chosen = [run for run in chosen if "-s" not in run[1]]
    if arguments.list:
        for tool, options in chosen:
            say(f"{tool} {' '.join(options)}")
        say(f"{len(chosen)} runs")
        return
    failed = []
    with Engine(user=user, log_level="warning") as engine:
        for number, (tool, options) in enumerate(chosen):
            port = unique_port()
            first, second = ("uib0", "uib1") if number % 2 else ("uib0", "uib0")
            common = [tool, "-p", str(port), *options]
            result = engine.pair(common + ["-d", first], common + ["-d", second, "127.0.0.1"], port, 120)
            problem = trouble(result.text) if result.ok else "status"
            name = f"{tool} {' '.join(options)} {first}-{second}"
            say(f"{'FAILED' if problem else 'ok    '} {result.seconds:6.2f} s  {name}")
            if problem:
                failed.append(name)
                say(result.text)
                expect(engine.process.running(), f"the engine died in {name}")
        say(f"pingpong: {len(chosen) - len(failed)} of {len(chosen)} passed")
        for name in failed:
            say(f"  failed: {name}")
        engine.expect_no_objects()
        engine.stop()
    expect(not failed, f"{len(failed)} of {len(chosen)} pingpong runs failed")


if __name__ == "__main__":
    uibtest.main(test)
