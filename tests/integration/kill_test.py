#!/usr/bin/python3
"""Deaths. Clients killed at random moments, also inside posts: the engine's memory and descriptors stay flat and nothing of the
dead stays in it. The engine killed under its clients: they end by themselves, with flushed work. A second engine on a socket
in use is refused; a stale socket is taken over; without an engine there is one clear line.

  --rounds N   clients killed (default 25; the full form is 200)
  --seed N     where the moments come from
"""

import argparse
import pathlib
import random
import signal
import subprocess
import time

import uibtest
from uibtest import Engine, Process, expect, say, wait_until

LEAST_WARM_UP = 10
# A sanitizer keeps freed memory back for a while: there only its own leak check says something.
RESIDENT_GROWTH_KIB = 4096 if uibtest.ENGINE_BUILD == uibtest.BUILD else 512 * 1024
TESTS = pathlib.Path(uibtest.BUILD) / "tests" / "integration"


def storm(engine, *arguments):
    return engine.spawn([TESTS / "post_storm", "--device", "uib0", "--peer-device", "uib1", *arguments], "post_storm")


def kill_one(engine, choice):
    """One victim: killed during its set-up, or a random fraction of a few milliseconds into its storm."""
    victim = storm(engine, "--seed", str(choice.randrange(1 << 30)))
    try:
        if choice.random() < 0.25:
            time.sleep(choice.uniform(0, 0.06))
        else:
            wait_until(lambda: "ready" in victim.output() or not victim.running(), 15,
                       lambda: f"post_storm is ready; it printed: {victim.output()}")
            expect(victim.running(), f"post_storm ended by itself: {victim.output()}")
            end = time.perf_counter() + choice.uniform(0, choice.choice((0.0005, 0.003, 0.03)))
            while time.perf_counter() < end:
                pass
        victim.send(signal.SIGKILL)
        expect(victim.wait(10) is not None, "a killed client stays")
    finally:
        victim.end()


def killed_clients(rounds, seed):
    choice = random.Random(seed)
    warm_up = max(LEAST_WARM_UP, rounds // 5)
    with Engine(log_level="warning") as engine:
        baseline = None
        for number in range(rounds + warm_up):
            kill_one(engine, choice)
            if number % 10 == 9:
                engine.expect_no_objects()
            if number == warm_up - 1:
                engine.expect_no_objects()
                baseline = uibtest.resident_kib(engine.pid), uibtest.descriptor_count(engine.pid)
        engine.expect_no_objects()
        engine.expect_healthy()
        engine.expect_no_objects()
        # A session is gone a moment before its last descriptors are.
        wait_until(lambda: uibtest.descriptor_count(engine.pid) <= baseline[1], 5,
                   lambda: f"descriptors back at {baseline[1]}, now {uibtest.descriptor_count(engine.pid)}")
        resident, descriptors = uibtest.resident_kib(engine.pid), uibtest.descriptor_count(engine.pid)
        say(f"{rounds} clients killed: engine's memory {baseline[0]} to {resident} KiB, descriptors {baseline[1]} to "
            f"{descriptors}")
        expect(resident <= baseline[0] + RESIDENT_GROWTH_KIB, f"memory grew from {baseline[0]} to {resident} KiB")
        engine.stop()


def killed_engine(number):
    """Clients of a dying engine: storms see the fatal event and flushed work; others end with an error, none hangs."""
    name = signal.Signals(number).name
    with Engine(log_level="warning") as engine:
        storms = [storm(engine, "--until-fatal", "--seed", str(seed)) for seed in (1, 2)]
        others = []
        for kind, options in (("ibv_rc_pingpong", ["-e", "-n", "100000000"]), ("ibv_rc_pingpong", ["-n", "100000000"]),
                              ("ib_send_bw", ["-F", "--run_infinitely", "-D", "1"])):
            port = uibtest.unique_port()
            others += engine.spawn_pair([kind, "-p", str(port), *options],
                                        [kind, "-p", str(port), *options, "127.0.0.1"], port)
        try:
            for side in storms:
                wait_until(lambda side=side: "ready" in side.output() or not side.running(), 20, "post_storm is ready")
            time.sleep(1)
            for side in storms + others:
                expect(side.running(), f"{side.name} ended before the engine: {side.output()}")
            engine.process.send(number)
            expect(engine.process.wait(5) is not None, f"the engine outlives {name}")
            end = time.monotonic() + 10
            for side in storms + others:
                status = side.wait(max(0.1, end - time.monotonic()))
                expect(status is not None, f"{side.name} ({' '.join(side.command[3:])}) hangs after the engine's {name}; "
                                           f"it printed:\n{side.output()}")
            for side in storms:
                expect(side.wait(0) == 0, f"post_storm after the engine's {name}: {side.output()}")
        finally:
            for side in storms + others:
                side.end()
    say(f"engine ended by {name}: {len(storms) + len(others)} clients ended by themselves")


def lines_of(text):
    return [line for line in text.splitlines() if line.strip()]


def sockets():
    with Engine(log_level="warning") as engine:
        second = Process(engine.command(), engine.directory, engine.environment(), name="second uibd")
        try:
            status = second.wait(10)
            expect(status not in (None, 0), f"a second engine on the same socket: status {status}")
            said = second.output()
            expect(str(engine.socket) in said and len(lines_of(said)) == 1,
                   f"a second engine is refused with one line that names the socket, not:\n{said}")
            say(f"second engine: {said.strip()}")
        finally:
            second.end()
        engine.expect_healthy()
        engine.process.send(signal.SIGKILL)
        engine.process.wait(5)
        engine.process.end()
        expect(engine.socket.exists(), "a killed engine leaves its socket (the test's assumption)")
        engine.start()
        engine.expect_healthy()
        say("stale socket: taken over")
        engine.stop()
        expect(not engine.socket.exists(), "an engine that ends in good order takes its socket away")


def no_engine():
    with Engine() as engine:
        settings = subprocess.run([str(part) for part in engine.uib("env")], env=engine.environment(),
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20)
        expect(settings.returncode == 0, f"uib env: {settings.stderr}")
        engine.stop()
        in_shell = ["/bin/bash", "-c", settings.stdout + "\nexec ibv_rc_pingpong"]
        for name, command in (("uib status", engine.uib("status")), ("uib run", engine.uib("run", "--", "ibv_devices")),
                              ("a program after uib env", in_shell)):
            done = subprocess.run([str(part) for part in command], env=engine.environment(), stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=20)
            told = [line for line in lines_of(done.stdout + done.stderr) if "uibd" in line]
            expect(done.returncode != 0, f"{name} succeeds without an engine: {done.stdout}{done.stderr}")
            expect(len(told) == 1, f"{name} without an engine: one line tells how to start it, not:\n"
                                   f"{done.stdout}{done.stderr}")
            say(f"no engine, {name}: {told[0]}")


def test():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    sockets()
    no_engine()
    killed_engine(signal.SIGKILL)
    killed_engine(signal.SIGTERM)
    killed_clients(arguments.rounds, arguments.seed)


if __name__ == "__main__":
    uibtest.main(test)
