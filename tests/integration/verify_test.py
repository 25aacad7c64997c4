#!/usr/bin/python3
"""examples/uib_verify over the engine: every operation's bytes compared, in the combinations of memory, waiting and sides.

  --full   more rounds and seeds, and messages up to 2^31 bytes
"""

import argparse
import pathlib

import uibtest
from uibtest import Engine, expect, say

PROGRAM = pathlib.Path(uibtest.BUILD) / "bin" / "uib_verify"
HUGE_PAGES_NEEDED = 40


def free_huge_pages():
    with open("/proc/meminfo") as info:
        return next((int(line.split()[1]) for line in info if line.startswith("HugePages_Free:")), 0)


def runs(full):
    rounds = "400" if full else "40"
    yield ["--rounds", rounds]
    yield ["--rounds", rounds, "--memory", "shared", "--seed", "2"]
    yield ["--rounds", rounds, "--events", "--seed", "3"]
    yield ["--rounds", rounds, "--threads", "--seed", "4"]
    yield ["--rounds", rounds, "--memory", "shared", "--events", "--threads", "--seed", "5"]
    yield ["--rounds", rounds, "--qps", "64", "--in-flight", "32", "--max-bytes", "65536", "--seed", "6"]
    yield ["--rounds", rounds, "--peer-device", "uib0", "--seed", "7"]
    for mtu in ("256", "512", "1024", "2048", "4096"):
        yield ["--rounds", "100" if full else "10", "--mtu", mtu, "--seed", mtu]
    if free_huge_pages() >= HUGE_PAGES_NEEDED:
        yield ["--rounds", rounds, "--memory", "huge", "--seed", "8"]
    else:
        say("huge pages: not run, none are reserved here")
    if full:
        for seed in range(100, 120):
            yield ["--rounds", "200", "--seed", str(seed)]
        yield ["--large", "--qps", "1"]
        yield ["--large", "--qps", "1", "--memory", "shared"]


def test():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true")
    arguments = parser.parse_args()
    failed = []
    with Engine(log_level="warning") as engine:
        for options in runs(arguments.full):
            command = [PROGRAM, "--device", "uib0"]
            if "--peer-device" not in options:
                command += ["--peer-device", "uib1"]
            result = engine.run(command + options, 900 if "--large" in options else 120)
            say(f"{'ok    ' if result.ok else 'FAILED'} {result.seconds:6.2f} s  uib_verify {' '.join(options)}")
            say(result.text)
            if not result.ok:
                failed.append(" ".join(options))
                expect(engine.process.running(), f"the engine died in uib_verify {' '.join(options)}")
        engine.expect_no_objects()
        engine.stop()
    expect(not failed, f"uib_verify failed with: {'; '.join(failed)}")


if __name__ == "__main__":
    uibtest.main(test)
