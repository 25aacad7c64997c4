#!/usr/bin/python3
"""Engines in network namespaces joined by InfiniBand links over Ethernet: one subnet, unmodified programs, bytes verified,
loss on the wire, three engines, one between two others, multicast across them, an engine and a port that go and come back.

  --quick       a choice of programs (default)
  --full        more of them, more rounds
  --only TEXT   only parts whose name contains TEXT
"""

import argparse
import contextlib

import uibtest
from fault_test import fault
from hosts import Checks, Network
from uibtest import Failure, expect, say, unique_port, wait_until

VERIFY = uibtest.BUILD / "bin" / "uib_verify"
DATAGRAM = uibtest.BUILD / "tests" / "integration" / "datagram_program"
XDP_PROGRAM = uibtest.BUILD / "lib" / "uib-xdp.o"
PINGPONGS = (
    ["ibv_rc_pingpong", "-c", "-n", "200"], ["ibv_uc_pingpong", "-c", "-n", "200"], ["ibv_ud_pingpong", "-c", "-s", "1000", "-n", "200"],
    ["ibv_srq_pingpong", "-c", "-n", "200"],
)
PERFTEST = (
    ["ib_send_bw"], ["ib_write_bw"], ["ib_read_bw"], ["ib_atomic_bw"],
    ["ib_send_lat"], ["ib_write_lat"], ["ib_read_lat"], ["ib_atomic_lat"],
    ["ib_send_bw", "-c", "UC", "-s", "4096"], ["ib_write_bw", "-c", "UC", "-s", "4096"], ["ib_send_lat", "-c", "UC"],
    ["ib_send_bw", "-c", "UD", "-s", "1000"], ["ib_send_lat", "-c", "UD"],
    ["ib_send_bw", "-c", "XRC"], ["ib_write_lat", "-c", "XRC"],
    ["ib_send_bw", "--use-srq"], ["ib_write_bw", "-q", "8"], ["ib_read_bw", "-b"],
)
GROUP = "ff12::7:1"
MLID = 0xC123  # programs that do not ask subnet administration agree on one
MULTICAST_QP = "0xFFFFFF"


def config(driver="af_packet"):
    return f'[engine]\ndevices = 2\n[[link]]\ninterface = "e0"\ndriver = "{driver}"\n'


def perftest(commands, count=200):
    return [[*command, "-F", "-n", str(count)] for command in commands]


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
    managers = [subnet_of(host)["manager"] for host in hosts]
    return managers.count("master") == 1 and managers.count("standby") == len(hosts) - 1


def subnet_of(host):
    return host.engine.status()["subnets"][0]


def members_known(hosts, count):
    """The one master knows `count` memberships of these engines, and the switches hold what it has made of them."""
    subnets = [subnet_of(host) for host in hosts]
    memberships = [one for subnet in subnets for one in subnet["general_services"]["memberships"]]
    return len(memberships) == count and all(one["registered"] for one in memberships) and all(
        subnet["settled"] for subnet in subnets if subnet["manager"] == "master")


def received(host, device):
    """Multicast packets that have come to the port."""
    return host.engine.status()["devices"][device]["ports"][0]["counters"]["multicast_rcv_packets"]


def multicast_drops(hosts):
    """At the first port of each engine."""
    return [host.engine.status()["devices"][0]["ports"][0]["counters"]["multicast_drops"] for host in hosts]


class Tests(Checks):
    def __init__(self, full):
        super().__init__()
        self.full = full

    def run(self, network, programs, devices=("uib0", "uib1"), hosts=(0, 1), seconds=40):
        for command in programs:
            port = unique_port()
            address = network.hosts[hosts[0]].ipv4
            server = [*command, "-d", devices[0], "-p", str(port)]
            client = [*command, "-d", devices[1], "-p", str(port), address]
            self.check(network.pair(server, client, port, seconds, hosts))

    def verify(self, network, rounds, *arguments):
        port = unique_port()
        common = [VERIFY, "--device", "uib0", "--rounds", str(rounds), *arguments]
        self.check(network.pair([*common, "--listen", str(port)],
                                [*common, "--connect", f"{network.hosts[0].ipv4}:{port}"], port, 60))

    @contextlib.contextmanager
    def subnet(self, count, mtu, driver="af_packet", **options):
        with Network(count, mtu, **options) as network, network.engines(log_level="warning", config=config(driver)) as hosts:
            wait_until(lambda: one_subnet(hosts), 30, "one subnet of all engines")
            say(f"LIDs {lids(hosts)}")
            yield network, hosts
            for host in hosts:
                host.engine.expect_no_objects()

    # -- parts --

    def programs(self):
        """MTUs and drivers."""
        for mtu, driver, choice in ((1500, "af_packet", slice(1, None, 2)), (9000, "af_packet", slice(0, None, 2)),
                                    (1500, "af_xdp", slice(0, None, 5))):
            say(f"=== two engines, MTU {mtu}, {driver}")
            if driver == "af_xdp" and not XDP_PROGRAM.exists():
                say("not run: af_xdp without its program takes the whole interface from the kernel (no clang when this was built)")
                continue
            try:
                with self.subnet(2, mtu, driver) as (network, _):
                    self.run(network, PINGPONGS if self.full else PINGPONGS[choice])
                    self.run(network, perftest(PERFTEST if self.full else PERFTEST[choice]))
                    self.verify(network, 40 if self.full else 4)
            except Failure as failure:
                if driver != "af_xdp" or "the driver does not take it" not in str(failure):
                    raise
                say(f"not run: no af_xdp here: {failure}")

    def loss(self):
        """One of a hundred frames of each side is lost on the way, packets and what the links tell each other alike."""
        say("=== two engines, MTU 1500, 1 % of all frames is lost")
        with self.subnet(2, 1500, loss=0.01, link="ib") as (network, hosts):
            sizes = (["ib_send_bw", "-s", "4096"], ["ib_write_bw", "-s", "65536"], ["ib_read_bw", "-s", "65536"], ["ib_atomic_bw"])
            # Of an acknowledge, 0.27 s: an engine may wait that long for a CPU of a busy machine.
            self.run(network, perftest([[*command, "-u", "16"] for command in sizes], 200 if self.full else 50))
            self.run(network, (PINGPONGS[0],))
            # Every byte compared; the operations that only the reliable service has.
            for operation in ("SEND with invalidate", "WRITE to a window", "READ", "compare-and-swap", "fetch-and-add"):
                self.verify(network, 20 if self.full else 3, "--only", operation)
            again = sum(device["ports"][0]["counters"]["retransmitted_packets"]
                        for host in hosts for device in host.engine.status()["devices"])
            expect(again > 0, "packets were lost, and sent again")
            say(f"packets sent again: {again}")

    def comes_and_goes(self):
        say("=== three engines; one goes and comes back")
        with self.subnet(3, 1500) as (network, hosts):
            for pair in ((0, 1), (1, 2), (2, 0)):
                self.run(network, PINGPONGS[:1], hosts=pair)
            before = lids(hosts[:1])
            hosts[2].ip("link", "set", "e0", "down")
            wait_until(lambda: one_subnet(hosts[:2]), 20, "the other two go on")
            self.run(network, PINGPONGS[:1])
            hosts[2].ip("link", "set", "e0", "up")
            wait_until(lambda: one_subnet(hosts), 30, "all three are one subnet again")
            expect(lids(hosts[:1]) == before, "LIDs stay")
            self.run(network, PINGPONGS[:1], hosts=(2, 0))

    def chain(self):
        """The engine in the middle has a link of its own, by the EtherType, to each of the two others."""
        say("=== three engines, one between the two others")
        types = ((0x88B5,), (0x88B5, 0x88B6), (0x88B6,))
        configs = ["[engine]\ndevices = 2\n" + "".join(f'[[link]]\ninterface = "e0"\nether_type = {kind}\n' for kind in of_host)
                   for of_host in types]
        with Network(3, 1500) as network, network.engines(log_level="warning", config=configs) as hosts:
            wait_until(lambda: one_subnet(hosts), 30, "one subnet of all engines")
            for pair in ((0, 2), (2, 0), (0, 1)):
                self.run(network, [*PINGPONGS[:1], *perftest([["ib_write_bw", "-s", "65536"], ["ib_read_bw", "-s", "65536"]])], hosts=pair)
            between = [link["forwarding"] for link in hosts[1].engine.status()["links"]]
            expect(all(counters["discarded"] == 0 for counters in between), f"nothing is lost in the middle: {between}")
            for sender in hosts:
                self.to_group(hosts, [(hosts[0], 1), (hosts[2], 0)], sender)

    def link_down(self):
        """At the engine that is not master, which hears of it by a trap: well before it looks, every ten seconds."""
        say("=== two engines; a rule takes a port's link down")
        with self.subnet(2, 1500) as (network, hosts):
            master, other = sorted(hosts, key=lambda host: subnet_of(host)["manager"])
            before, sweeps = lids(hosts), subnet_of(master)["sweeps"]
            rule = fault(other.engine, "add", "link-down", "--device", "uib1").strip()
            expect([state for _, state in ports(other)] == ["ACTIVE", "DOWN"], f"ports: {ports(other)}")
            wait_until(lambda: subnet_of(master)["sweeps"] > sweeps, 5, "the master has heard of it")
            self.run(network, PINGPONGS[:1], ("uib0", "uib0"))
            fault(other.engine, "remove", rule)
            wait_until(lambda: one_subnet(hosts), 5, "the master has brought the port up again")
            expect(lids(hosts) == before, "LIDs stay")
            devices = ("uib0", "uib1") if other is hosts[1] else ("uib1", "uib0")
            self.run(network, PINGPONGS[:1], devices)

    def multicast(self):
        say("=== multicast: two engines")
        with self.subnet(2, 1500) as (_, hosts):
            # In the sender's engine and in the other one, whichever is master.
            for sender in hosts:
                self.to_group(hosts, [(hosts[0], 0), (hosts[1], 1)], sender)
            # The master gives the group the first member's LID; the second program and the sender beside it name another.
            self.to_group(hosts, [(hosts[0], 0), (hosts[1], 1)], hosts[1], mlids=(MLID, MLID + 1), to=MLID + 1)
            self.without_grh(hosts)
        say("=== multicast: three engines; one goes and comes back")
        with self.subnet(3, 1500) as (_, hosts):
            everywhere = [(host, 1) for host in hosts]
            for sender in hosts:
                self.to_group(hosts, everywhere, sender)
            self.to_group(hosts, [(hosts[0], 0), (hosts[2], 0)], hosts[1])
            self.member_returns(hosts)

    def start_receiver(self, host, device, mlid):
        receiver = host.engine.spawn([DATAGRAM, "receive", f"uib{device}", "0", GROUP, str(mlid)], f"receiver{host.number}")
        wait_until(lambda: "ready" in receiver.output() or not receiver.running(), 15, "the receiver is ready")
        expect(receiver.running(), receiver.output())
        return receiver

    def to_group(self, hosts, members, sender, between=None, mlids=None, to=MLID):
        """One datagram from a port of `sender` reaches exactly the members, (host, device), each once."""
        receivers = []
        try:
            for (host, device), mlid in zip(members, mlids or [MLID] * len(members)):
                receivers.append(self.start_receiver(host, device, mlid))
                wait_until(lambda: members_known(hosts, len(receivers)), 15, "the master knows the members")
            if between:
                between(len(members))
            before = {(host, device): received(host, device) for host in hosts for device in (0, 1)}
            sent = sender.engine.run([DATAGRAM, "send", "uib0", "0", GROUP, MULTICAST_QP, str(to)], 20)
            expect(sent.ok, sent.text)
            for receiver in receivers:
                expect(receiver.wait(12) == 0, f"{receiver.name}: {receiver.output()}")
                _, size, _, data = receiver.output().split("got")[-1].split(" ")
                expect(int(size) == 140 and data.strip() == "u" * 100, receiver.output())
            for (host, device), count in before.items():
                copies = received(host, device) - count
                expect(copies == ((host, device) in members), f"host {host.number} uib{device}: {copies} copies")
        finally:
            for receiver in receivers:
                receiver.end()
        wait_until(lambda: members_known(hosts, 0), 15, "the members have left")
        self.passed += 1
        say(f"ok     host {sender.number} to the members {[(host.number, device) for host, device in members]}")

    def without_grh(self, hosts):
        """Such a datagram to a group does not leave its port, though the switches have a way for its LID."""
        receiver = self.start_receiver(hosts[1], 1, MLID)
        try:
            wait_until(lambda: members_known(hosts, 1), 15, "the master knows the member")
            before, dropped = received(hosts[1], 1), multicast_drops(hosts)
            sent = hosts[0].engine.run([DATAGRAM, "send", "uib0", "0", "none", MULTICAST_QP, str(MLID)], 20)
            expect(sent.ok, sent.text)
            expect(multicast_drops(hosts) == [dropped[0] + 1, dropped[1]], f"dropped where it was sent: {multicast_drops(hosts)}")
            expect(received(hosts[1], 1) == before, "none has come")
        finally:
            receiver.end()
        wait_until(lambda: members_known(hosts, 0), 15, "the member has left")
        self.passed += 1
        say("ok     no datagram without a GRH leaves for a group")

    def member_returns(self, hosts):
        def goes_and_returns(count):
            hosts[2].ip("link", "set", "e0", "down")
            wait_until(lambda: one_subnet(hosts[:2]) and members_known(hosts[:2], count - 1), 20, "the other two go on")
            hosts[2].ip("link", "set", "e0", "up")
            wait_until(lambda: one_subnet(hosts) and members_known(hosts, count), 30, "the third is there again, a member as before")

        self.to_group(hosts, [(hosts[0], 0), (hosts[2], 1)], hosts[1], goes_and_returns)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    tests = Tests(options.full)
    for part in (tests.programs, tests.loss, tests.comes_and_goes, tests.chain, tests.link_down, tests.multicast):
        if options.only in part.__name__:
            part()
    say(f"{tests.passed} of {tests.passed + len(tests.failed)} passed")
    expect(not tests.failed, f"failed: {tests.failed}")


if __name__ == "__main__":
    uibtest.main(main)
