#!/usr/bin/python3
"""Engines in network namespaces that talk RoCE v2 over veth pairs and a bridge: unmodified programs, bytes verified, groups,
loss, and what happens to interfaces, addresses and engines meanwhile.

  --quick       a choice of drivers, MTUs and address families (default)
  --full        all of them, more programs, more rounds
  --only TEXT   only parts whose name contains TEXT
"""

import argparse
import os
import pathlib
import re
import signal
import socket
import time

import uibtest
from hosts import Checks, Network, UDP_PORT, ip
from uibtest import Failure, expect, say, unique_port, wait_until

PROGRAMS = uibtest.BUILD / "tests" / "integration"
DATAGRAM = PROGRAMS / "datagram_program"
VERIFY = uibtest.BUILD / "bin" / "uib_verify"
XDP_PROGRAM = uibtest.BUILD / "lib" / "uib-xdp.o"
# Indices in the GID table: the link-local address, the IPv4 address, the other IPv6 address.
GIDS = {"link-local": "0", "ipv4": "1", "ipv6": "2"}
TIMEOUT = ("-u", "16")  # of an acknowledge, 0.27 s: an engine may wait that long for a CPU of a busy machine
XDP_MTU = 3382  # of the driver's frames; net/port/dpdk/device_arguments.cc

PINGPONGS = (
    ["ibv_rc_pingpong", "-c"], ["ibv_rc_pingpong", "-c", "-e", "-s", "65536"], ["ibv_uc_pingpong", "-c"],
    ["ibv_ud_pingpong", "-c", "-s", "1000"], ["ibv_srq_pingpong", "-c"],
)
PERFTEST = (
    ["ib_send_bw"], ["ib_write_bw"], ["ib_read_bw"], ["ib_atomic_bw"],
    ["ib_send_lat"], ["ib_write_lat"], ["ib_read_lat"], ["ib_atomic_lat"],
    ["ib_send_bw", "-c", "UC", "-s", "4096"], ["ib_write_bw", "-c", "UC", "-s", "4096"], ["ib_send_lat", "-c", "UC"],
    ["ib_send_bw", "-c", "UD", "-s", "1000"], ["ib_send_lat", "-c", "UD"],
    ["ib_send_bw", "-c", "XRC"], ["ib_write_lat", "-c", "XRC"],
    ["ib_send_bw", "--use-srq"], ["ib_send_bw", "-e"], ["ib_write_bw", "-b"], ["ib_write_bw", "-q", "16"],
)
FEW = (PERFTEST[0], PERFTEST[1], PERFTEST[2], PERFTEST[4], PERFTEST[7], PERFTEST[11])


def perftest(command, gid, count="200"):
    return [*command, "-F", "-x", GIDS[gid], "-n", count]


class Tests(Checks):
    def __init__(self, full):
        self.full = full
        super().__init__()

    def run_pair(self, network, common, seconds=40, hosts=(0, 1)):
        """UC and UD may lose a packet for want of a buffer, on a busy machine: they are tried three times, and it is told."""
        unreliable = re.search(r"_u[cd]_|UC|UD", " ".join(map(str, common))) is not None
        for last in (False, False, True) if unreliable else (True,):
            port = unique_port()
            result = network.pair([*common, "-p", str(port)], [*common, "-p", str(port), network.hosts[hosts[0]].ipv4], port,
                                  10 if unreliable else seconds, hosts)
            if result.ok or last:
                break
            say(f"again  {result.seconds:6.2f} s  {result.what}")
            for host in network.hosts:
                say(f"       {host.namespace}: {host.counters()}")
        self.check(result)

    def pingpongs(self, network, gid, choice=PINGPONGS, count="200"):
        for command in choice:
            self.run_pair(network, [*command, "-g", GIDS[gid], "-d", "uib0", "-n", count])

    def perftests(self, network, gid, choice, more=()):
        for command in choice:
            self.run_pair(network, perftest([*command, "-d", "uib0", *more], gid))

    def verify(self, network, rounds, options=(), seconds=60):
        port = unique_port()
        common = [VERIFY, "--device", "uib0", "--rounds", str(rounds), *options]
        self.check(network.pair([*common, "--listen", str(port)],
                                [*common, "--connect", f"{network.hosts[0].ipv4}:{port}"], port, seconds))

    # -- parts --

    def programs(self):
        """Drivers, MTUs and address families."""
        runs = [("af_packet", 1500, "ipv4"), ("af_packet", 9000, "ipv6"), ("af_xdp", 1500, "ipv4")]
        if self.full:
            runs = [(driver, mtu, family) for driver in ("af_packet", "af_xdp") for mtu in (1500, XDP_MTU, 9000)
                    for family in ("ipv4", "ipv6") if driver != "af_xdp" or mtu <= XDP_MTU]
        for number, (driver, mtu, family) in enumerate(runs):
            say(f"=== {driver}, MTU {mtu}, {family}")
            if driver == "af_xdp" and not XDP_PROGRAM.exists():
                say("not run: af_xdp without its program takes the whole interface from the kernel (no clang when this was built)")
                continue
            with Network(2, mtu) as network:
                try:
                    self.on_network(network, driver, family, number == 0 or self.full)
                except Failure as failure:
                    if driver != "af_xdp" or "the driver does not take it" not in str(failure):
                        raise
                    say(f"not run: no af_xdp here: {failure}")

    def on_network(self, network, driver, family, everything):
        with network.engines(driver, log_level="warning") as hosts:
            self.pingpongs(network, family, PINGPONGS if everything else PINGPONGS[::3])
            self.perftests(network, family, PERFTEST if self.full else PERFTEST[::2] if everything else FEW[::2])
            # Enough for every buffer of the port's to have had its turn.
            self.verify(network, 40 if self.full or driver == "af_xdp" else 4)
            for host in hosts:
                expect(host.counter("rx_icrc") == 0, "no packet with a wrong ICRC")
                expect(host.counter("rx_truncated") == 0, "no frame was cut")
                host.engine.expect_no_objects()
                host.engine.stop()

    def loss(self):
        """One of a hundred packets of each side is dropped on the way."""
        with Network(2, 1500, loss=0.01) as network, network.engines(log_level="warning") as hosts:
            self.pingpongs(network, "ipv4", (PINGPONGS[0],), "1000" if self.full else "200")
            self.perftests(network, "ipv4", [[*command, *size] for command, size in (
                (["ib_send_bw"], ["-s", "4096"]), (["ib_write_bw"], ["-s", "65536"]), (["ib_read_bw"], ["-s", "65536"]),
                (["ib_atomic_bw"], []))], TIMEOUT)
            self.perftests(network, "ipv4", (["ib_write_lat"],))
            # Every byte compared; the operations that only the reliable service has.
            for operation in ("SEND with invalidate", "WRITE to a window", "READ", "compare-and-swap", "fetch-and-add"):
                self.verify(network, 20 if self.full else 3, ["--only", operation])
            retransmitted = sum(host.engine.status()["devices"][0]["ports"][0]["counters"].get(name, 0)
                                for host in hosts for name in ("timeouts", "naks_received", "retransmitted_packets"))
            expect(retransmitted > 0, "packets were lost, and sent again")
            say(f"retransmissions, NAKs and time-outs counted: {retransmitted}")

    def three(self):
        """Three engines on one bridge, all pairs at once."""
        with Network(3, 1500) as network, network.engines(log_level="warning") as hosts:
            sides = []
            try:
                for first, second in ((0, 1), (1, 2), (2, 0)):
                    port = unique_port()
                    common = ["ibv_rc_pingpong", "-c", "-e", "-d", "uib0", "-g", GIDS["ipv4"], "-n", "300", "-p", str(port)]
                    server = hosts[first].engine.spawn(common, f"server{first}")
                    sides.append(server)
                    wait_until(lambda: hosts[first].engine.listening(port) or not server.running(), 15, "the server listens")
                    sides.append(hosts[second].engine.spawn([*common, hosts[first].ipv4], f"client{second}"))
                for side in sides:
                    status = side.wait(30)
                    expect(status == 0, f"{side.name} ended with {status}:\n{side.output()}")
            finally:
                for side in sides:
                    side.end()
            for host in hosts:
                expect(host.counter("rx_other_host") == 0, "the bridge knows who is where")
            self.passed += 3
            say("ok     three engines, three pairs at once")

    def datagrams(self):
        """Groups of IPv4 and IPv6, the header in front of a datagram, paths that cannot be."""
        with Network(3, 1500) as network, network.engines() as hosts:
            self.perftests(network, "link-local", (["ib_send_bw", "-c", "UD", "-g", "-s", "512"],))
            for gid, group in (("ipv4", "::ffff:239.1.2.3"), ("ipv6", "ff0e::4791:5")):
                self.to_group(hosts, gid, group)
            for gid in ("ipv4", "ipv6"):
                self.to_one(hosts, gid)
            for gid, to in (("ipv6", f"::ffff:{hosts[0].ipv4}"), ("ipv4", hosts[0].ipv6), ("link-local", "::ffff:239.1.2.3")):
                result = hosts[1].engine.run([DATAGRAM, "refused", "uib0", GIDS[gid], to], 20)
                expect("refused 22 22" in result.text, f"from {gid} to {to}, EINVAL twice: {result.text}")
                self.passed += 1
            result = hosts[1].engine.run([DATAGRAM, "refused", "uib0", "7", hosts[0].ipv6], 20)
            expect("refused 22 22" in result.text, f"an empty entry of the GID table: {result.text}")
            say("ok     paths between address families are refused")

    def start_receiver(self, host, gid, *group):
        receiver = host.engine.spawn([DATAGRAM, "receive", "uib0", GIDS[gid], *group], "receiver")
        wait_until(lambda: "ready" in receiver.output() or not receiver.running(), 15, "the receiver is ready")
        return receiver

    def check_datagram(self, receiver, gid, sender, to):
        expect(receiver.wait(12) == 0, f"{receiver.name}:\n{receiver.output()}")
        _, size, header, data = receiver.output().split("got")[-1].split(" ")
        raw = bytes.fromhex(header)
        expect(int(size) == 140 and data.strip() == "u" * 100, receiver.output())
        if gid == "ipv4":
            expect(raw[:20] == bytes(20) and raw[20] == 0x45, f"an IPv4 header in the last 20 bytes: {header}")
            expect(raw[28] == 33 and raw[21] & 0xFC == 0x48, f"time to live and class: {header}")
            expect(raw[32:36] == socket.inet_aton(sender.ipv4), f"the sender's address: {header}")
            expect(raw[36:40] == socket.inet_pton(socket.AF_INET6, to)[12:], f"the receiver's address: {header}")
        else:
            expect(raw[0] >> 4 == 6 and raw[7] == 33, f"an IPv6 header: {header}")
            expect(raw[8:24] == socket.inet_pton(socket.AF_INET6, sender.ipv6), f"the sender's address: {header}")
            expect(raw[24:40] == socket.inet_pton(socket.AF_INET6, to), f"the receiver's address: {header}")

    def to_group(self, hosts, gid, group):
        members = [self.start_receiver(host, gid, group) for host in hosts[:2]]
        try:
            for member, host in zip(members, hosts):
                expect(self.is_member(host, group), f"the host is a member of {group}; {member.output()}")
            expect(not self.is_member(hosts[2], group), f"the sender is no member of {group}")
            sent = hosts[2].engine.run([DATAGRAM, "send", "uib0", GIDS[gid], group, "0xFFFFFF"], 20)
            expect(sent.ok, sent.text)
            for receiver in members:
                self.check_datagram(receiver, gid, hosts[2], group)
        finally:
            for receiver in members:
                receiver.end()
        wait_until(lambda: not self.is_member(hosts[0], group), 5, f"the host has left {group}")
        self.passed += 1
        say(f"ok     a datagram to the group {group} reaches its members")

    def is_member(self, host, group):
        raw = socket.inet_pton(socket.AF_INET6, group)
        if raw[0] == 0xFF:
            return raw.hex() in host.shell("cat /proc/net/igmp6")
        return f"{int.from_bytes(raw[12:], 'little'):08X}" in host.shell("cat /proc/net/igmp")

    def to_one(self, hosts, gid):
        receiver = self.start_receiver(hosts[0], gid)
        try:
            number = receiver.output().split()[1]
            to = f"::ffff:{hosts[0].ipv4}" if gid == "ipv4" else hosts[0].ipv6
            sent = hosts[1].engine.run([DATAGRAM, "send", "uib0", GIDS[gid], to, number], 20)
            expect(sent.ok, sent.text)
            self.check_datagram(receiver, gid, hosts[1], to)
        finally:
            receiver.end()
        self.passed += 1
        say(f"ok     the header in front of a datagram over {gid}")

    def silence(self):
        """The kernel answers nothing that comes to RoCE's UDP port."""
        with Network(2, 1500) as network, network.engines() as hosts:
            # A connected socket hears of the port's ICMP answer; port 4792 shows that this would be seen.
            program = ("import socket, sys\n"
                       "s = socket.socket(socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)\n"
                       "s.settimeout(1)\n"
                       "s.connect((sys.argv[1], int(sys.argv[2])))\n"
                       "s.send(b'x' * 40)\n"
                       "try: s.recv(10)\n"
                       "except TimeoutError: print('silence')\n"
                       "except ConnectionRefusedError: print('refused')\n")
            for address in (hosts[0].ipv4, hosts[0].ipv6):
                for port, want in ((UDP_PORT, "silence"), (UDP_PORT + 1, "refused")):
                    heard = hosts[1].shell(f"/usr/bin/python3 -c \"{program}\" {address} {port}").strip()
                    expect(heard == want, f"port {port} of {address}: {heard}")
            self.passed += 1
            say(f"ok     nothing answers on UDP port {UDP_PORT}")

    def changes(self):
        """Addresses, MTU, MAC and the interface itself change under a busy engine."""
        with Network(2, 1500) as network, network.engines() as hosts:
            host = hosts[0]
            port = unique_port()
            busy = [host.engine.spawn(["ib_write_bw", "-F", "-d", "uib0", "-x", "1", "--run_infinitely", "-p", str(port)])]
            watcher = host.engine.spawn(["stdbuf", "-oL", "ibv_asyncwatch", "-d", "uib0"])
            try:
                wait_until(lambda: host.engine.listening(port), 15, "the server listens")
                busy.append(hosts[1].engine.spawn(["ib_write_bw", "-F", "-d", "uib0", "-x", "1", "--run_infinitely",
                                                   "-p", str(port), host.ipv4]))
                wait_until(lambda: watcher.output().strip() != "" and host.counter("rx_frames") > 1000, 15, "traffic")
                self.addresses(host, watcher)
                self.follow_mtu(network, host)
                self.new_mac(hosts)
            finally:
                for side in busy:
                    side.end()
            try:
                self.comes_back(network, host, watcher)
            finally:
                watcher.end()

    def heard(self, watcher, what, act, seconds=1.0):
        """`act` makes the watcher print `what`, in time; the machine's load is allowed for."""
        before = watcher.output().count(what)
        act()
        started = time.monotonic()
        wait_until(lambda: watcher.output().count(what) > before, 10, lambda: f"{what}; heard: {watcher.output()}")
        taken = time.monotonic() - started
        load = os.getloadavg()[0] / (os.cpu_count() or 1)
        expect(taken < seconds * max(1, load), f"{what} after {taken:.2f} s")
        self.passed += 1
        say(f"ok     {what} after {taken:.2f} s")

    def addresses(self, host, watcher):
        self.heard(watcher, "IBV_EVENT_GID_CHANGE", lambda: host.ip("addr", "add", "10.44.7.7/24", "dev", "e0"))
        expect("::ffff:10.44.7.7" in self.gids(host) or "0a2c:0707" in self.gids(host), f"the new GID: {self.gids(host)}")
        self.heard(watcher, "IBV_EVENT_GID_CHANGE", lambda: host.ip("addr", "del", "10.44.7.7/24", "dev", "e0"))
        expect("0a2c:0707" not in self.gids(host), f"the GID is gone: {self.gids(host)}")

    def gids(self, host):
        return " ".join(host.engine.status()["devices"][0]["ports"][0]["gids"])

    def active_mtu(self, host):
        shown = host.engine.run(["ibv_devinfo", "-d", "uib0"], 20)
        found = re.search(r"active_mtu:\s+(\d+)", shown.text)
        expect(found is not None, shown.text)
        return int(found.group(1))

    def follow_mtu(self, network, host):
        for mtu, active in ((4200, 4096), (700, 512), (1500, 1024)):
            host.ip("link", "set", "e0", "mtu", mtu)
            if mtu > network.mtu:
                ip("-n", network.switch, "link", "set", f"p{host.number}", "mtu", mtu)
            wait_until(lambda: self.active_mtu(host) == active, 10, f"active MTU {active} at {mtu} bytes")
        # IPv6 left with less than 1280 bytes.
        host.ip("addr", "replace", f"{host.ipv6}/64", "dev", "e0", "nodad")
        self.passed += 1
        say("ok     the active MTU follows the interface")

    def new_mac(self, hosts):
        """The peer's MAC changes: its neighbour sends to the new one."""
        hosts[1].ip("link", "set", "e0", "address", "02:44:00:00:99:99")
        self.run_pair(hosts[0].network, ["ibv_rc_pingpong", "-c", "-d", "uib0", "-g", GIDS["ipv4"], "-n", "100"])

    def comes_back(self, network, host, watcher):
        self.heard(watcher, "IBV_EVENT_PORT_ERR", host.unplug)
        self.heard(watcher, "IBV_EVENT_PORT_ACTIVE", host.plug, 2.0)
        wait_until(lambda: "0a2c:0001" in self.gids(host), 5, lambda: f"the addresses are back: {self.gids(host)}")
        self.run_pair(network, ["ibv_rc_pingpong", "-c", "-d", "uib0", "-g", "1", "-n", "100"])
        host.ip("link", "set", "e0", "down")
        wait_until(lambda: "ACTIVE" not in self.state(host), 5, "the port is down")
        host.ip("link", "set", "e0", "up")
        wait_until(lambda: "ACTIVE" in self.state(host), 5, "the port is up again")
        self.passed += 1
        say("ok     the interface went down and came up")

    def state(self, host):
        return host.engine.status()["devices"][0]["ports"][0]["state"].upper()

    def ingress(self):
        """Whether the host's stack is spared the engine's frames is told; an engine that may not see to it says why."""
        with Network(1) as network, network.engines() as hosts:
            engine = hosts[0].engine
            told = "no program at the ingress of e0"

            def spared():
                return engine.status()["devices"][0]["ports"][0]["ingress_drop"]

            expect(spared() == ("off" if told in engine.process.output() else "on"), engine.process.output())
            say(f"ok     ingress drop {spared()}")
            engine.stop()
            line = engine.command()
            at = line.index("exec") + 2  # behind ip netns exec NAME
            engine.command = lambda: [*line[:at], "setpriv", "--bounding-set=-all,+net_raw,+net_admin", "--", *line[at:]]
            engine.start()
            expect(spared() == "off" and f"{told} (Operation not permitted)" in engine.process.output(), engine.process.output())
            self.passed += 2
            say("ok     ingress drop off without privilege")

    def vlan(self):
        """Frames with a tag, over hosts whose kernels know nothing of it."""
        with Network(2, 1600) as network, network.engines(options=", vlan = 7"):
            self.pingpongs(network, "ipv4", (PINGPONGS[0], PINGPONGS[3]), "100")
        with Network(2, 1600) as network:
            with network.engines(options=", vlan = 7") as hosts:
                hosts[1].engine.stop()
                config = hosts[1].engine.config
                config.write_text(config.read_text().replace("vlan = 7", "vlan = 8"))
                hosts[1].engine.start()
                port = unique_port()
                common = ["ibv_uc_pingpong", "-d", "uib0", "-g", "1", "-n", "10", "-p", str(port)]
                result = network.pair(common, [*common, hosts[0].ipv4], port, 3)
                expect(not result.ok, "another VLAN's packets are not for us")
                expect(hosts[0].counter("rx_other_host") > 0, "they are counted")
                self.passed += 1
                say("ok     another VLAN's packets are counted, not taken")

    def death(self):
        """An engine is killed in the middle of traffic: the other side's requests time out; a new one takes its place."""
        with Network(2, 1500) as network, network.engines() as hosts:
            port = unique_port()
            common = ["ib_write_bw", "-F", "-d", "uib0", "-x", "1", "-p", str(port), "--run_infinitely", "-u", "8"]
            server = hosts[0].engine.spawn(common, "server")
            client = None
            try:
                wait_until(lambda: hosts[0].engine.listening(port), 15, "the server listens")
                client = hosts[1].engine.spawn([*common, hosts[0].ipv4], "client")
                wait_until(lambda: hosts[0].counter("rx_frames") > 2000, 15, "traffic")
                hosts[0].engine.process.send(signal.SIGKILL)
                status = client.wait(20)
                expect(status not in (0, None), f"the client's requests fail: status {status}\n{client.output()}")
                expect(re.search(r"status 12|syndrom|retry|Failed", client.output()), client.output())
                expect(server.wait(20) is not None, "the killed engine's client ends")
            finally:
                for side in (server, client):
                    if side is not None:
                        side.end()
            hosts[0].engine.process.end()
            hosts[0].engine.start()
            say("ok     the peer of a killed engine times out")
            self.run_pair(network, ["ibv_rc_pingpong", "-c", "-d", "uib0", "-g", "1", "-n", "100"])
            hosts[1].engine.expect_no_objects()


def test():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    uibtest.need_tools("ip", "tc", "ibv_rc_pingpong", "ib_send_bw", "ibv_asyncwatch")
    for program in (DATAGRAM, VERIFY):
        if not pathlib.Path(program).exists():
            uibtest.skip(f"{program} is not built")
    tests = Tests(arguments.full)
    started = time.monotonic()
    for part in (tests.programs, tests.loss, tests.three, tests.datagrams, tests.silence, tests.ingress, tests.vlan, tests.changes, tests.death):
        if arguments.only in part.__name__:
            say(f"=== {part.__name__}: {part.__doc__}")
            try:
                part()
            except Failure as failure:
                tests.failed.append(part.__name__)
                say(f"FAILED {part.__name__}: {failure}")
    say(f"roce: {tests.passed} passed, {len(tests.failed)} failed in {time.monotonic() - started:.0f} s, load {os.getloadavg()[0]:.1f}")
    expect(not tests.failed, f"failed: {'; '.join(tests.failed)}")


if __name__ == "__main__":
    uibtest.main(test)
