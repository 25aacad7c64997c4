#!/usr/bin/python3
"""Two engines joined by InfiniBand links over the drivers that need no host interface: vhost and virtio_user, memif (both for any
user), and two tap interfaces on a bridge (root). Unmodified programs, bytes verified; an engine that comes later, dies and comes
back; sockets that cannot be.

  --figures   also what each carries: ib_write_bw of 64 KiB and 64 bytes, ib_send_lat of 2 bytes
"""

import argparse
import contextlib
import os
import re
import signal
import socket
import time
import types

import uibtest
from hosts import Checks, HostEngine, ip, run_pair
from ib_link_test import one_subnet
from uibtest import Engine, Failure, cpu_seconds, expect, need_tools, say, unique_port, wait_until

NOBODY = 65534
IDLE_SECONDS = 2
MOST_IDLE = 0.3  # of a CPU; one that polls takes as much of it as it gets
FEWEST_NAPS = 100  # thousands on a machine with nothing else to do
PROGRAMS = (["ibv_rc_pingpong", "-c", "-n", "200"], ["ib_write_bw", "-F", "-s", "65536", "-n", "200"])
FIGURES = (["ib_write_bw", "-F", "-s", "65536", "-n", "2000"], ["ib_write_bw", "-F", "-s", "64", "-n", "20000"],
           ["ib_send_lat", "-F", "-s", "2", "-n", "2000"])


def config_of(driver, where, more=""):
    return f'[engine]\ndevices = 1\n[[link]]\ndriver = "{driver}"\ninterface = "{where}"\n{more}'


def joined(engines):
    hosts = [types.SimpleNamespace(engine=engine) for engine in engines]
    wait_until(lambda: one_subnet(hosts), 20, "one subnet of both engines")


class Tests(Checks):
    def __init__(self, figures):
        super().__init__()
        self.programs = PROGRAMS + (FIGURES if figures else ())

    def run(self, engines, programs):
        for command in programs:
            port = unique_port()
            common = [*command, "-d", "uib0", "-p", str(port)]
            result = run_pair(*engines, common, [*common, "127.0.0.1"], port, 30)
            self.check(result)
            if command in FIGURES:
                say("          " + " ".join(re.findall(r"(?m)^ ?\d+ +\d+ .*$", result.text)[-1].split()))

    def verify(self, engines):
        port = unique_port()
        common = [engines[0].build / "bin" / "uib_verify", "--device", "uib0", "--rounds", "2"]
        self.check(run_pair(*engines, [*common, "--listen", str(port)], [*common, "--connect", f"127.0.0.1:{port}"], port, 30))

    @staticmethod
    def idle(engines):
        """Nothing wakes an engine through these drivers; all the same it leaves the CPU to others when nothing is to be done."""
        def sleeps():
            return [engine.status()["counters"]["lane_sleeps"] for engine in engines]

        before, slept = [cpu_seconds(engine.pid) for engine in engines], sleeps()
        time.sleep(IDLE_SECONDS)
        shares = [(cpu_seconds(engine.pid) - was) / IDLE_SECONDS for engine, was in zip(engines, before)]
        slept = [now - was for now, was in zip(sleeps(), slept)]
        text = f"idle: {', '.join(f'{share:.1%}' for share in shares)} of a CPU, {slept} naps in {IDLE_SECONDS} s"
        expect(max(shares) < MOST_IDLE and min(slept) > FEWEST_NAPS, text)
        say(f"ok     {text}")

    def both(self, engines):
        joined(engines)
        self.idle(engines)
        self.run(engines, self.programs)
        self.verify(engines)
        for engine in engines:
            engine.expect_no_objects()

    def sockets(self, server, client, user=None):
        """The client's end comes first and waits; then one dies, then the other."""
        say(f"=== {server} and {client}{' as nobody' if user else ''}")
        with contextlib.ExitStack() as stack:
            first = Engine("\n", user, "warning")
            where = first.directory / "link.sock"
            first.config.write_text(config_of(client, where))
            second = Engine(config_of(server, where, "server = true\n"), user, "warning")
            for engine in (first, second):
                stack.enter_context(engine)
            self.both((first, second))
            for died, left in ((first, second), (second, first)) if user is None else ():
                died.process.send(signal.SIGKILL)
                died.process.wait(10)
                wait_until(lambda left=left: self.alone(left), 10, "the link is down")
                died.start()
                joined((first, second))
                self.run((first, second), PROGRAMS[:1])
            for engine in (first, second):
                engine.stop()

    def taps(self):
        """Each engine is the far end of the kernel's interface, so the bridge has to carry its frames to the other one."""
        say("=== two tap interfaces on a bridge")
        if os.geteuid() != 0 or not os.path.exists("/dev/net/tun"):
            say("not run: tap interfaces need root and /dev/net/tun")
            return
        namespace = f"ut{os.getpid()}taps"
        ip("netns", "add", namespace)
        try:
            for arguments in (["lo", "up"], ["br0", "up"]):
                if arguments[0] == "br0":
                    ip("-n", namespace, "link", "add", "br0", "type", "bridge")
                ip("-n", namespace, "link", "set", *arguments)
            with contextlib.ExitStack() as stack:
                engines = [HostEngine(namespace, config_of("tap", name), "warning") for name in ("ta", "tb")]
                for engine, name in zip(engines, ("ta", "tb")):
                    stack.enter_context(engine)
                    ip("-n", namespace, "link", "set", name, "master", "br0")
                self.both(engines)
        finally:
            ip("netns", "del", namespace, check=False)

    @staticmethod
    def alone(engine):
        expect(engine.process.running(), f"the engine survives its peer: {engine.process.output()[-3000:]}")
        return engine.status()["subnets"][0]["manager"] == "master" and len(engine.status()["subnets"][0]["nodes"]) < 4


def silent_servers():
    """A server that takes the connection and then says nothing, before the engine is there or after, holds up that port alone."""
    say("=== a server that says nothing")
    for early in (True, False):
        with contextlib.ExitStack() as stack:
            server = stack.enter_context(socket.socket(socket.AF_UNIX))
            engine = Engine("\n")
            where = engine.directory / "link.sock"
            engine.config.write_text(config_of("virtio_user", where).replace("devices = 1", "devices = 2"))
            server.bind(str(where))
            server.settimeout(10)
            if early:
                server.listen()
            stack.enter_context(engine)
            server.listen()
            taken = stack.enter_context(server.accept()[0])
            expect(taken.recv(1), "the driver asks something")
            engine.expect_healthy()
            engine.stop()
        say(f"ok     there {'before' if early else 'after'} the engine")


def refused(config, words):
    with contextlib.suppress(Failure):
        engine = Engine(config)
        engine.start()
        raise SystemExit(f"FAILED: an engine runs with {config}")
    text = engine.process.output()
    engine.close()
    expect(words in text, f"'{words}' in what the engine says: {text}")
    say(f"ok     {words}")


def bad_sockets():
    say("=== sockets that cannot be")
    long = "/tmp/" + "x" * 120
    for driver in ("memif", "vhost", "virtio_user"):
        refused(config_of(driver, "/no/such/place/s.sock"), "there is no directory /no/such/place")
    refused(config_of("vhost", long), "at most 107 bytes")
    refused(config_of("memif", "/etc/hostname"), "there is something else than a socket")
    refused(config_of("virtio_user", "/tmp/s.sock", "server = true\n"), "virtio_user cannot be the server")
    refused(config_of("tap", "uibtap0", "mtu = 4200\n"), "set mtu to 1500 or less")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--figures", action="store_true")
    options = parser.parse_args()
    need_tools("ib_write_bw", "ibv_rc_pingpong")
    tests = Tests(options.figures)
    bad_sockets()
    silent_servers()
    users = (None, NOBODY) if os.geteuid() == 0 else (None,)
    for user in users:
        tests.sockets("vhost", "virtio_user", user)
        tests.sockets("memif", "memif", user)
    tests.taps()
    say(f"{tests.passed} of {tests.passed + len(tests.failed)} passed")
    expect(not tests.failed, f"failed: {tests.failed}")


if __name__ == "__main__":
    uibtest.main(main)
