#!/usr/bin/python3
"""`uib capture` of RoCE ports against the wire: of two engines in network namespaces one captures, and dumpcap writes down what
passes the other end of its cable (at its own end frames that a driver sends past the queues are not to be seen). Both files have the same frames in each direction, byte for byte: MAC addresses, VLAN tag, IP header with
its identification, ECN and TTL, UDP ports, ICRC. Over IPv4 and IPv6, with a tag and without, multicast included; the first
packets have to wait until the kernel knows the neighbour.
"""

import signal
import struct

import uibtest
from capture_test import Capture, packets_of
from hosts import Network
from uibtest import Process, expect, need_tools, say, unique_port, wait_until

UDP_PORT = 4791
PROGRAMS = (
    ["ib_write_bw", "-F", "-s", "5000", "-n", "20"], ["ib_read_bw", "-F", "-s", "3000", "-n", "10"],
    ["ib_atomic_lat", "-F", "-n", "10"], ["ib_send_lat", "-F", "-c", "UD", "-s", "100", "-n", "10"],
)
MULTICAST = ["ib_send_lat", "-F", "-c", "UD", "-g", "-s", "64", "-n", "5"]  # its groups are IPv6's


class Truth:
    """dumpcap at the bridge's end of a host's cable."""

    def __init__(self, host, file):
        self.file = file
        command = ["ip", "netns", "exec", host.network.switch, "dumpcap", "-q", "-B", "64", "-i", f"p{host.number}", "-w", file]
        self.process = Process(command, host.engine.directory, name="dumpcap")
        wait_until(lambda: "File:" in self.process.output() or not self.process.running(), 15, "dumpcap runs")

    def roce_frames(self):
        try:
            return [frame for frame, _ in packets_of(self.file) if is_roce(frame)]
        except struct.error:  # a block that is being written
            return []

    def stop(self, expected):
        """Once it has `expected` frames: dumpcap leaves alone what the kernel has not handed over when the signal comes."""
        wait_until(lambda: len(self.roce_frames()) >= expected, 10, lambda: f"{len(self.roce_frames())} of {expected} frames on the wire")
        self.process.send(signal.SIGINT)
        status = self.process.wait(10)
        self.process.end()
        expect(status == 0 and "dropped" in self.process.output(), f"dumpcap ended with {status}: {self.process.output()}")
        return self.roce_frames()


def is_roce(frame):
    at = 16 if frame[12:14] == b"\x81\x00" else 12
    kind, ip = frame[at:at + 2], frame[at + 2:]
    udp = {b"\x08\x00": 20, b"\x86\xdd": 40}.get(kind)
    protocol = {b"\x08\x00": 9, b"\x86\xdd": 6}.get(kind)
    return udp is not None and ip[protocol] == 17 and int.from_bytes(ip[udp + 2:udp + 4], "big") == UDP_PORT


def compare(captured, true, mac):
    """Each direction is a sequence; between the two the file's order is that of the two readers' clocks."""
    for what, of_ours in (("sent", True), ("received", False)):
        got = [frame for frame in captured if (frame[6:12] == mac) == of_ours]
        wire = [frame for frame in true if (frame[6:12] == mac) == of_ours]
        for number, (ours, theirs) in enumerate(zip(got, wire)):
            expect(ours == theirs, f"frame {number} {what}\ncaptured    {ours.hex()}\non the wire {theirs.hex()}")
        expect(len(got) == len(wire), f"{what}: {len(got)} frames captured, {len(wire)} on the wire")
        expect(len(wire) > 50, f"{what}: only {len(wire)} frames")


def gid_index(host, wanted):
    """Of the interface's IPv4 or global IPv6 address."""
    for index, gid in enumerate(host.engine.status()["devices"][0]["ports"][0]["gids"]):
        if wanted in gid:
            return str(index)
    raise uibtest.Failure(f"no GID with {wanted}")


def on_the_wire(options, tag):
    with Network(2, 1600) as network, network.engines(options=options, log_level="warning") as hosts:
        host = hosts[0]
        mac = bytes.fromhex(host.mac.replace(":", ""))
        for ipv4 in (True, False):
            truth = Truth(host, host.engine.directory / "true.pcapng")
            file = host.engine.directory / "captured.pcapng"
            capture = Capture(host.engine, "-w", file)
            index = gid_index(host, ":ffff:0a2c:" if ipv4 else "fd44:")
            for command in PROGRAMS if ipv4 else (*PROGRAMS, MULTICAST):
                port = unique_port()
                common = [*command, "-d", "uib0", "-x", index, "-p", str(port)]
                result = network.pair(common, [*common, host.ipv4], port, 30)
                expect(result.ok, result.text)
            printed = capture.stop()
            expect(" 0 dropped" in printed, printed)
            captured = [frame for frame, _ in packets_of(file)]
            true = truth.stop(len(captured))
            compare(captured, true, mac)
            tagged = sum(frame[12:14] == b"\x81\x00" for frame in captured)
            expect(tagged == (len(captured) if tag else 0), f"{tagged} of {len(captured)} frames have a tag")
            kind = b"\x08\x00" if ipv4 else b"\x86\xdd"
            expect(all(frame[16 if tag else 12:][:2] == kind for frame in captured), "the address family")
            ports = {frame[(16 if tag else 12) + 2 + (20 if ipv4 else 40):][:2] for frame in captured if frame[6:12] == mac}
            expect(len(ports) > 1, f"UDP source ports tell connections apart: {ports}")
            say(f"passed: {len(captured)} frames over IPv{4 if ipv4 else 6}{', tagged' if tag else ''}")


def test():
    need_tools("dumpcap", "ib_write_bw")
    on_the_wire("", False)
    on_the_wire(", vlan = 7", True)


if __name__ == "__main__":
    uibtest.main(test)
