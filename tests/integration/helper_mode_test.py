#!/usr/bin/python3
"""An engine that the kernel lets reach no client's memory: it runs as nobody, its clients as root. All copies are made by the
clients' helper threads (design.md section 4, the fourth way); every operation's bytes are compared.
"""

import os
import pathlib

import uibtest
from uibtest import Engine, expect, say, unique_port

NOBODY = 65534
PROGRAM = pathlib.Path(uibtest.BUILD) / "bin" / "uib_verify"


def test():
    if os.geteuid() != 0:
        uibtest.skip("needs root, to run engine and clients as different users")
    uibtest.need_tools("ibv_rc_pingpong")
    with Engine(user=NOBODY) as engine:
        engine.user = None  # the clients stay root
        for options in (["--rounds", "10"], ["--rounds", "10", "--events", "--seed", "2"],
                        ["--rounds", "10", "--memory", "shared", "--seed", "3"]):
            result = engine.run([PROGRAM, "--device", "uib0", "--peer-device", "uib1", *options], 120)
            say(f"uib_verify {' '.join(options)}: {result.text}")
            expect(result.ok, f"uib_verify {' '.join(options)} failed")
        port = unique_port()
        result = engine.pair(["ibv_rc_pingpong", "-c", "-n", "200", "-s", "4096", "-p", port],
                             ["ibv_rc_pingpong", "-c", "-n", "200", "-s", "4096", "-p", port, "127.0.0.1"], port, 60)
        expect(result.ok, f"ibv_rc_pingpong failed:\n{result.text}")
        log = engine.process.output()
        expect("copied by its helper thread" in log, "the engine did not use the helpers")
        expect("is reached directly" not in log, "the engine reached a client's memory itself")
        engine.expect_no_objects()
        engine.stop()


if __name__ == "__main__":
    uibtest.main(test)
