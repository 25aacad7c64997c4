#!/usr/bin/python3
"""Engines in network namespaces joined by InfiniBand links over Ethernet: one subnet, unmodified programs, bytes verified,
loss on the wire, three engines, an engine that goes and comes back.

  --quick   a choice of programs (default)
  --full    more of them, more MTUs
"""

import argparse

import uibtest
from hosts import Checks, Network
from uibtest import expect, say, unique_port, wait_until

VERIFY = uibtest.BUILD / "bin" / "uib_verify"
CONFIG = '[engine]\ndevices = 2\n[[link]]\ninterface = "e0"\n'
PROGRAMS = (
    ["ibv_rc_pingpong", "-c", "-n", "200"], ["ibv_uc_pingpong", "-c", "-n", "200"], ["ibv_ud_pingpong", "-c", "-s", "1000", "-n", "200"],
    ["ibv_srq_pingpong", "-c", "-n", "200"],
    ["ib_send_bw", "-F", "-n", "200"], ["ib_write_bw", "-F", "-n", "200"], ["ib_read_bw", "-F", "-n", "200"],
    ["ib_atomic_bw", "-F", "-n", "200"], ["ib_send_lat", "-F", "-n", "200"], ["ib_write_lat", "-F", "-n", "200"],
    ["ib_send_bw", "-F", "-c", "UD", "-s", "1000", "-n", "200"], ["ib_send_bw", "-F", "-c", "XRC", "-n", "200"],
    ["ib_write_bw", "-F", "-q", "8", "-n", "200"],
)
FEW = PROGRAMS[::3]


def ports(host):
    """(LID, state) of the engine's ports."""
    return [(device["ports"][0]["lid"], device["ports"][0]["state"]) for device in host.engine.status()["devices"]]


def lids(hosts):
    return [lid for host in hosts for lid, _ in ports(host)]


def one_subnet(hosts):
    """Every port is active, no LID is there twice, one manager is master and all follow it."""
    seen = lids(hosts)
    if len(set(seen)) != len(seen) or any(state != "ACTIVE" for host in hosts for _, state in ports(host)):
        return False
    managers = [host.engine.status()["subnets"][0]["manager"] for host in hosts]
    return managers.count("master") == 1 and managers.count("standby") == len(hosts) - 1


class Tests(Checks):
    def run(self, network, programs, devices=("uib0", "uib1"), hosts=(0, 1), seconds=40):
        for command in programs:
            port = unique_port()
            address = network.hosts[hosts[0]].ipv4
            server = [*command, "-d", devices[0], "-p", str(port)]
            client = [*command, "-d", devices[1], "-p", str(port), address]
            self.check(network.pair(server, client, port, seconds, hosts))

    def verify(self, network, rounds):
        port = unique_port()
        common = [VERIFY, "--device", "uib0", "--rounds", str(rounds)]
        self.check(network.pair([*common, "--listen", str(port)],
                                [*common, "--connect", f"{network.hosts[0].ipv4}:{port}"], port, 60))

    def two(self, mtu, programs):
        say(f"=== two engines, MTU {mtu}")
        with Network(2, mtu) as network, network.engines(log_level="warning", config=CONFIG) as hosts:
            wait_until(lambda: one_subnet(hosts), 20, "one subnet of both engines")
            say(f"LIDs {lids(hosts)}")
            self.run(network, programs)
            self.verify(network, 4)
            for host in hosts:
                host.engine.expect_no_objects()

    def comes_and_goes(self):
        say("=== three engines; one goes and comes back")
        with Network(3, 1500) as network, network.engines(log_level="warning", config=CONFIG) as hosts:
            wait_until(lambda: one_subnet(hosts), 30, "one subnet of three engines")
            say(f"LIDs {lids(hosts)}")
            for pair in ((0, 1), (1, 2), (2, 0)):
                self.run(network, (PROGRAMS[0],), hosts=pair)
            before = lids(hosts[:1])
            hosts[2].ip("link", "set", "e0", "down")
            wait_until(lambda: one_subnet(hosts[:2]), 20, "the other two go on")
            self.run(network, (PROGRAMS[0],))
            hosts[2].ip("link", "set", "e0", "up")
            wait_until(lambda: one_subnet(hosts), 30, "all three are one subnet again")
            expect(lids(hosts[:1]) == before, "LIDs stay")
            self.run(network, (PROGRAMS[0],), hosts=(2, 0))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--full", action="store_true")
    options = parser.parse_args()
    tests = Tests()
    tests.two(1500, PROGRAMS if options.full else FEW)
    tests.two(9000, PROGRAMS)
    tests.comes_and_goes()
    say(f"{tests.passed} of {tests.passed + len(tests.failed)} passed")
    expect(not tests.failed, f"failed: {tests.failed}")


if __name__ == "__main__":
    uibtest.main(main)
