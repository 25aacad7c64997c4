#!/usr/bin/python3
"""The life of an XRC target QP across processes (xrc_lifetime.cc), on each device and a few times over."""

import uibtest
from uibtest import Engine, expect, say

ROUNDS = 5


def test():
    program = uibtest.BUILD / "tests" / "integration" / "xrc_lifetime"
    with Engine(log_level="warning") as engine:
        for device in ("uib0", "uib1"):
            for _ in range(ROUNDS):
                result = engine.run([program, device], 60)
                expect(result.ok, f"{result.what} ended with {result.status}:\n{result.text}")
        engine.expect_no_objects()
        engine.stop()
    say(f"{2 * ROUNDS} times the target QP outlived its maker, and not its last holder")


if __name__ == "__main__":
    uibtest.main(test)
