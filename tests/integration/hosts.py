"""Hosts for tests of ports that leave the engine: network namespaces, joined by a bridge in one of its own, an engine in each.

  with Network(2, mtu=1500) as network:      needs root; skips with the reason where the kernel has not what it takes
      with network.engines("af_packet"):
          network.pair(server, client, ...)

Namespaces have names of their own for each process and are deleted at the end, with everything in them.
"""

import contextlib
import os
import re
import subprocess
import time

import uibtest
from uibtest import Engine, Failure, Result, expect, say, skip, wait_until

UDP_PORT = 4791
IB_ETHER_TYPE = 0x88B5


def ip(*arguments, check=True):
    done = subprocess.run(["ip", *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20)
    if check and done.returncode != 0:
        raise Failure(f"ip {' '.join(map(str, arguments))}: {done.stderr.strip()}")
    return done


# Classic BPF that goes on behind its end with frames of a link, and two instructions further with others.
SELECT_FRAMES = {
    "roce": [
        (0x28, 0, 0, 12), (0x15, 0, 4, 0x0800), (0x30, 0, 0, 23), (0x15, 0, 9, 17), (0x28, 0, 0, 36), (0x15, 5, 7, UDP_PORT),
        (0x15, 0, 6, 0x86DD), (0x30, 0, 0, 20), (0x15, 0, 4, 17), (0x28, 0, 0, 56), (0x15, 0, 2, UDP_PORT),
    ],
    "ib": [(0x28, 0, 0, 12), (0x15, 0, 2, IB_ETHER_TYPE)],
}


def loss_program(link, share):
    """For a traffic control filter with direct action: drops this share of the link's frames."""
    program = [
        *SELECT_FRAMES[link],
        (0x20, 0, 0, 0xFFFFF038), (0x25, 0, 1, int(share * 2**32)),  # a random number: one above passes
        (0x06, 0, 0, 0xFFFFFFFF), (0x06, 0, 0, 2),
    ]
    return f"{len(program)}," + ",".join(" ".join(map(str, line)) for line in program)


class Checks:
    """Counts pairs of programs that did well; goes on after a failure, so that one run shows them all."""

    def __init__(self):
        self.passed, self.failed = 0, []

    def check(self, result):
        trouble = re.search(r"(?im)^.*(invalid data|Failed|Problems|Completion with error|Couldn't).*$", result.text)
        good = result.ok and trouble is None
        say(f"{'ok    ' if good else 'FAILED'} {result.seconds:6.2f} s  {result.what}")
        if good:
            self.passed += 1
        else:
            self.failed.append(result.what)
            say(result.text)


class HostEngine(Engine):
    """An engine in a network namespace, and the programs beside it there."""

    def __init__(self, namespace, config, log_level="info"):
        self.namespace = namespace
        super().__init__(config, log_level=log_level)

    def within(self, command):
        return ["ip", "netns", "exec", self.namespace, *command]

    def command(self):
        return self.within(super().command())

    def uib(self, *arguments):
        return self.within(super().uib(*arguments))

    def listening(self, port):
        wanted = f":{port:04X}"
        for name in ("tcp", "tcp6"):
            with contextlib.suppress(FileNotFoundError), open(f"/proc/{self.pid}/net/{name}") as table:
                for line in table:
                    field = line.split()
                    if field[3] == "0A" and field[1].endswith(wanted):
                        return True
        return False


def run_pair(first, second, server, client, port, seconds=60):
    """The server over the first engine, the client over the second, as Engine.pair()."""
    started = time.monotonic()
    sides = [first.spawn(server, "server")]
    try:
        wait_until(lambda: first.listening(port) or not sides[0].running(), 15, "the server listens")
        sides.append(second.spawn(client, "client"))
        end = started + seconds
        while any(side.running() for side in sides) and time.monotonic() < end:
            if any(not side.running() and side.wait(0) != 0 for side in sides):
                end = min(end, time.monotonic() + 2)
            time.sleep(0.01)
        statuses = [side.wait(0) for side in sides]
    except Failure as failure:
        return Result(1, f"{failure}\n{sides[0].output()}", " ".join(map(str, server)), time.monotonic() - started)
    finally:
        for side in sides:
            side.end()
    text = ""
    for side, status in zip(sides, statuses):
        shown = f"status {status}" if status is not None else "still ran at its time limit and was ended"
        command = side.command[side.command.index("--") + 1:]
        text += f"--- {side.name}: {' '.join(command)} ({shown})\n{side.output()}\n"
    return Result(0 if statuses == [0, 0] else 1, text, " ".join(map(str, client)), time.monotonic() - started)


class Host:
    """A namespace with interface e0 and addresses by the host's number."""

    def __init__(self, network, number):
        self.network, self.number = network, number
        self.namespace = f"{network.name}h{number}"
        self.ipv4, self.ipv6 = f"10.44.0.{number}", f"fd44::{number}"
        self.mac = f"02:44:00:00:00:{number:02x}"
        self.engine = None
        ip("netns", "add", self.namespace, check=False)
        # Addresses are usable at once, without looking for duplicates.
        self.shell("echo 0 > /proc/sys/net/ipv6/conf/all/accept_dad; echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad")
        self.plug()

    def shell(self, command):
        done = subprocess.run(["ip", "netns", "exec", self.namespace, "sh", "-c", command], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=30)
        expect(done.returncode == 0, f"{command}: {done.stderr}")
        return done.stdout

    def ip(self, *arguments):
        return ip("-n", self.namespace, *arguments)

    def plug(self):
        """A cable from e0 to the bridge, and the addresses."""
        network = self.network
        if not network.direct:
            ip("-n", network.switch, "link", "add", f"p{self.number}", "mtu", network.mtu, "type", "veth",
               "peer", "name", "e0", "netns", self.namespace, "mtu", network.mtu, "address", self.mac)
            ip("-n", network.switch, "link", "set", f"p{self.number}", "master", "br0", "up")
        elif self.number == 1:
            ip("netns", "add", f"{network.name}h2")  # as the second host will
            self.ip("link", "add", "e0", "mtu", network.mtu, "address", self.mac, "type", "veth",
                    "peer", "name", "e0", "netns", f"{network.name}h2", "mtu", network.mtu)
            ip("-n", f"{network.name}h2", "link", "set", "e0", "up")
        self.ip("link", "set", "lo", "up")
        self.ip("link", "set", "e0", "up")
        self.ip("addr", "add", f"{self.ipv4}/24", "dev", "e0")
        self.ip("addr", "add", f"{self.ipv6}/64", "dev", "e0", "nodad")
        network.lose_on(self.number)
        # It comes first in the GID table only if it is there when the engine starts.
        wait_until(self.has_link_local, 10, "the link-local address")

    def has_link_local(self):
        shown = self.shell("ip -6 addr show dev e0 scope link")
        return "fe80" in shown and "tentative" not in shown

    def unplug(self):
        self.ip("link", "del", "e0")

    @property
    def link_local(self):
        for line in self.shell("ip -6 -o addr show dev e0 scope link").split():
            if line.startswith("fe80"):
                return line.split("/")[0]
        raise Failure(f"{self.namespace} has no link-local address")

    def counters(self):
        """The port's, without those that are zero."""
        return {name: value for name, value in self.engine.status()["devices"][0]["ports"][0]["counters"].items() if value}

    def counter(self, name):
        """One of the uplink's counters."""
        return self.engine.status()["devices"][0]["ports"][0]["counters"][f"port_{name}"]


class Network:
    """`loss`: the share of the frames of this link ("roce" or "ib") that the bridge drops, of those from each host. `direct`:
    two hosts, joined by one veth pair without a bridge."""

    def __init__(self, count, mtu=1500, loss=0.0, link="roce", direct=False):
        if os.geteuid() != 0:
            skip("needs root, for network namespaces")
        if ip("netns", "list", check=False).returncode != 0:
            skip("ip netns does not work here")
        self.name = f"ut{os.getpid()}"
        self.switch = f"{self.name}sw"
        self.mtu, self.loss, self.link, self.count, self.direct = mtu, loss, link, count, direct
        self.hosts = []

    def __enter__(self):
        if ip("netns", "add", self.switch, check=False).returncode != 0:
            skip("no network namespaces here")
        try:
            if ip("-n", self.switch, "link", "add", "br0", "type", "bridge", check=False).returncode != 0:
                skip("the kernel has no bridges")
            ip("-n", self.switch, "link", "set", "br0", "up")
            for number in range(1, self.count + 1):
                self.hosts.append(Host(self, number))
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for host in self.hosts:
            ip("netns", "del", host.namespace, check=False)
        ip("netns", "del", self.switch, check=False)

    def lose_on(self, number):
        """Drops at the bridge's port."""
        if self.loss == 0:
            return
        for arguments in (["qdisc", "add", "dev", f"p{number}", "clsact"],
                          ["filter", "add", "dev", f"p{number}", "ingress", "bpf", "da", "bytecode", loss_program(self.link, self.loss)]):
            done = subprocess.run(["tc", "-n", self.switch, *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, timeout=20)
            if done.returncode != 0:
                skip(f"the kernel cannot drop packets by a filter: tc {arguments[0]}: {done.stderr.strip()}")

    @contextlib.contextmanager
    def engines(self, driver="af_packet", options="", log_level="info", config=None):
        """An engine with device uib0 on e0 of every host; or with this configuration, or these, one for each host."""
        if config is None:
            config = f'[[device]]\nname = "uib0"\nport = {{ link = "roce", driver = "{driver}", interface = "e0"{options} }}\n'
        with contextlib.ExitStack() as stack:
            configs = [config] * len(self.hosts) if isinstance(config, str) else config
            for host, its_config in zip(self.hosts, configs):
                host.engine = HostEngine(host.namespace, its_config, log_level)
                stack.enter_context(host.engine)
            yield self.hosts

    def pair(self, server, client, port, seconds=60, hosts=(0, 1)):
        """The server on the first host, the client on the second."""
        first, second = (self.hosts[number].engine for number in hosts)
        return run_pair(first, second, server, client, port, seconds)
