#!/usr/bin/python3
"""ibv_xsrq_pingpong of ibverbs-utils, unmodified: a server with one XRC SRQ and several clients, polled and with events.

Its processes share one XRC domain if they use one device: all open it by the same file.
"""

import re
import time

import uibtest
from uibtest import Engine, expect, say, unique_port, wait_until

CLIENTS = 2
TESTS = 200
SIZES = (1, 192, 193, 4096, 65536)


def exchange(engine, options, devices):
    """One server, CLIENTS clients; all must end with 0 and say nothing of trouble."""
    port = unique_port()
    common = ["ibv_xsrq_pingpong", "-p", str(port), "-n", str(TESTS), *options]
    sides = [engine.spawn(common + ["-d", devices[0], "-c", str(CLIENTS)], "server")]
    try:
        wait_until(lambda: uibtest.listening(port) or not sides[0].running(), 15, "the server listens")
        for number in range(CLIENTS):
            sides.append(engine.spawn(common + ["-d", devices[1], "127.0.0.1"], f"client{number}"))
        for side in sides:
            status = side.wait(30)
            text = side.output()
            expect(status == 0, f"{' '.join(common)}: {side.name} ended with {status}:\n{text}")
            trouble = re.search(r"(?im)^.*(failed|couldn't|error|invalid).*$", text)
            expect(trouble is None, f"{side.name} printed: {trouble and trouble.group(0)}")
    finally:
        for side in sides:
            side.end()


def test():
    uibtest.need_tools("ibv_xsrq_pingpong")
    runs = 0
    with Engine(log_level="warning") as engine:
        for devices in (("uib0", "uib0"), ("uib0", "uib1")):
            for events in ([], ["-e"]):
                for size in SIZES:
                    started = time.monotonic()
                    options = events + ["-s", str(size)]
                    exchange(engine, options, devices)
                    runs += 1
                    say(f"ok     {time.monotonic() - started:6.2f} s  {' '.join(options)} {devices[0]}-{devices[1]}")
            exchange(engine, ["-o"], devices)
            runs += 1
        engine.expect_no_objects()
        engine.stop()
    say(f"xsrq pingpong: {runs} runs with {CLIENTS} clients each passed")


if __name__ == "__main__":
    uibtest.main(test)
