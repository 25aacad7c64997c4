#!/usr/bin/python3
"""`uib capture`, read by tshark: traffic of every operation on InfiniBand and on Ethernet devices dissects without a malformed
packet or an expert's error, with the fields that were meant.

What tshark 4.0 does not do, and what is done about it:
  - it shows ICRC and VCRC but checks neither (it has no such field or preference): this script computes both for every packet
    of the file, bit by bit from the definition, and compares tshark's ICRC with the packet's;
  - it knows no ATOMIC WRITE (0x1D) and nothing behind the BTH of XRC: of these packets it shows no ICRC.
"""

import json
import pathlib
import signal
import struct
import subprocess
import zlib

import uibtest
from uibtest import Engine, Process, expect, need_tools, say, unique_port, wait_until

PROGRAM = pathlib.Path(__file__).with_name("tap_program.py")
ETHERNET = '[engine]\nlink_layer = "ethernet"\n'
FIELDS = ("frame.number", "infiniband.bth.opcode", "infiniband.bth.destqp", "infiniband.bth.psn", "infiniband.bth.padcnt",
          "infiniband.reth.va", "infiniband.reth.r_key", "infiniband.reth.dmalen", "infiniband.aeth.syndrome.opcode",
          "infiniband.aeth.syndrome.error_code", "infiniband.deth.q_key", "infiniband.deth.srcqp",
          "infiniband.invariant.crc", "frame.interface_name", "_ws.malformed", "eth.dst")
# The UDP checksum is zero, over IPv6 too (A17.4.5.3). What payloads might mean to programs of other people's is nobody's guess.
OPTIONS = ("-o", "udp.ignore_ipv6_zero_checksum:TRUE", "--disable-protocol", "rpcordma", "--disable-protocol", "smb_direct")
RC, UC, UD, XRC = 0x00, 0x20, 0x60, 0xA0
CONNECTED = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
ATOMIC_WRITE = 0x1D
RC_ONLY = (12, 13, 14, 15, 16, 17, 18, 19, 20, 22, 23, ATOMIC_WRITE)
ACK_ACK, ACK_RNR, ACK_NAK = 0, 1, 3


class Capture:
    """`uib capture` beside an engine; stop() returns what it printed."""

    def __init__(self, engine, *arguments):
        self.process = Process(engine.uib("capture", *arguments), engine.directory, engine.environment(), name="capture")
        wait_until(lambda: "capturing to" in self.process.output() or not self.process.running(), 10, "the capture runs")
        expect(self.process.running(), f"uib capture: {self.process.output()}")

    def stop(self, number=signal.SIGINT):
        self.process.send(number)
        status = self.process.wait(10)
        self.process.end()
        expect(status == 0, f"uib capture ended with {status}: {self.process.output()}")
        return self.process.output()


def crc16(data):
    """The VCRC (IBA 7.8.2): polynomial 0x100B, least significant bit first, ones at both ends."""
    crc = 0xFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xD008 if crc & 1 else 0)
    return crc ^ 0xFFFF


def packets_of(file):
    """(bytes of the packet on its link, whether the interface is Ethernet) of each packet of a pcapng file."""
    data, at, links, packets = file.read_bytes(), 0, [], []
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        body = data[at + 8:at + length - 4]
        if kind == 1:
            links.append(struct.unpack_from("<H", body)[0])
        elif kind == 6:
            interface, _, _, kept, original = struct.unpack_from("<IIIII", body)
            expect(kept == original, "a packet is whole")
            ethernet = links[interface] == 1
            packets.append((body[20 + (0 if ethernet else 16):20 + kept], ethernet))
        at += length
    return packets


def check_infiniband_crcs(frame, icrc):
    masked = bytearray(frame[:-6])
    masked[0] |= 0xF0  # VL
    bth = 8
    if frame[1] & 3 == 3:  # a GRH: the whole LRH, traffic class, flow label, hop limit
        masked[:8] = b"\xff" * 8
        masked[8] |= 0x0F
        masked[9:12] = b"\xff\xff\xff"
        masked[15] = 0xFF
        bth = 48
    masked[bth + 4] = 0xFF  # FECN, BECN, reserved
    expect(zlib.crc32(masked) == struct.unpack("<I", frame[-6:-2])[0], f"ICRC of {frame.hex()}")
    expect(crc16(frame[:-2]) == struct.unpack("<H", frame[-2:])[0], f"VCRC of {frame.hex()}")
    expect(icrc is None or icrc == struct.unpack(">I", frame[-6:-2])[0], "tshark finds the ICRC where it is")


def check_roce_crc(frame, icrc):
    if frame[12:14] == b"\x08\x00":
        ip = bytearray(frame[14:14 + struct.unpack(">H", frame[16:18])[0]])
        ip[1], ip[8], ip[10:12] = 0xFF, 0xFF, b"\xff\xff"
        udp = 20
    else:
        ip = bytearray(frame[14:54 + struct.unpack(">H", frame[18:20])[0]])
        ip[0] |= 0x0F
        ip[1:4] = b"\xff\xff\xff"
        ip[7] = 0xFF
        udp = 40
    ip[udp + 6:udp + 8] = b"\xff\xff"
    ip[udp + 12] = 0xFF
    wire = bytes(ip[-4:])
    expect(zlib.crc32(b"\xff" * 8 + bytes(ip[:-4])) == struct.unpack("<I", wire)[0], f"ICRC of {frame.hex()}")
    expect(icrc is None or icrc == struct.unpack(">I", wire)[0], "tshark finds the ICRC where it is")


def tshark(file, *arguments):
    done = subprocess.run(["tshark", "-n", *OPTIONS, "-r", str(file), *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=60)
    expect(done.returncode == 0, f"tshark: {done.stderr}")
    return done.stdout


def dissected(file):
    """Each packet's fields as tshark has them; nothing is malformed, no expert says error."""
    bad = tshark(file, "-Y", "_ws.malformed || _ws.expert.severity >= 0x800000")
    expect(bad == "", f"tshark finds fault with:\n{bad[:4000]}")
    arguments = [part for field in FIELDS for part in ("-e", field)]
    rows = []
    for line in tshark(file, "-T", "fields", "-E", "occurrence=f", *arguments).splitlines():
        rows.append(dict(zip((field.rsplit(".", 1)[-1] if field != "infiniband.aeth.syndrome.opcode" else "ack"
                              for field in FIELDS), line.split("\t"))))
    return rows


def check_crcs(file, rows):
    packets = packets_of(file)
    expect(len(packets) == len(rows), f"{len(packets)} packets in the file, {len(rows)} from tshark")
    for (frame, ethernet), row in zip(packets, rows):
        known = int(row["opcode"]) != ATOMIC_WRITE and int(row["opcode"]) & 0xE0 != XRC
        expect(known == (row["crc"] != ""), f"tshark shows the ICRC of what it knows: {row}")
        (check_roce_crc if ethernet else check_infiniband_crcs)(frame, int(row["crc"], 16) if known else None)
    return len(packets)


def check_fields(rows, facts):
    """What the program did, on the wire in its order."""
    sent = [row for row in rows if row["interface_name"] == "uib0"]
    for fact in facts:
        base = {"RC": RC, "UC": UC, "UD": UD}[fact["service"]]
        to_second = [row for row in sent if row["destqp"] and int(row["destqp"], 16) == fact["qps"][1]]
        expect(to_second, f"{fact['service']} packets to queue pair {fact['qps'][1]}")
        expect(all(int(row["opcode"]) & 0xE0 == base for row in to_second), f"service of {fact}")
        if fact["service"] == "UD":
            expect(all(int(row["q_key"], 16) == fact["qkey"] and int(row["srcqp"], 16) == fact["qps"][0]
                       for row in to_second), "DETH of datagrams")
            continue
        lengths = []
        expected = fact["psn"]
        for row in to_second:
            opcode, psn = int(row["opcode"]) & 0x1F, int(row["psn"])
            if psn == (expected - 1) & 0xFFFFFF:
                continue  # a SEND again, after RNR NAK
            expect(psn == expected, f"PSN {psn}, not {expected}: {row}")
            packets = 1
            if opcode in (6, 10, 11, 12):
                expect(int(row["va"], 16) == fact["address"] and int(row["r_key"], 16) == fact["rkey"], f"RETH of {row}")
                lengths.append(int(row["dmalen"]))
                if opcode == 12:
                    packets = -(-int(row["dmalen"]) // 1024)
            expected = expected + packets & 0xFFFFFF
        each = 3 if fact["service"] == "RC" else 2
        expect(lengths == [length for length in (17, 1024, 2053) for _ in range(each)], f"RETH lengths: {lengths}")
        if fact["service"] == "RC":
            answers = {int(row["ack"]) for row in sent if row["destqp"] and int(row["destqp"], 16) == fact["qps"][0] and row["ack"]}
            expect({ACK_ACK, ACK_RNR} <= answers, f"ACKs and an RNR NAK: {answers}")


def capture_of_everything(config):
    with Engine(config) as engine:
        file = engine.directory / "all.pcapng"
        capture = Capture(engine, "-w", file)
        lost = subprocess.run([str(part) for part in engine.uib("fault", "add", "drop", "--opcode", "rc-send-middle", "--count", "1")],
                              env=engine.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20)
        expect(lost.returncode == 0, f"uib fault: {lost.stderr}")
        # The drop comes out of a connection of its own, whose packets are not those that are compared one by one.
        result = engine.run(["/usr/bin/python3", "-B", PROGRAM, "sends", "1", "3000"], 30)
        expect(result.ok, result.text)
        result = engine.run(["/usr/bin/python3", "-B", PROGRAM, "all"], 60)
        expect(result.ok, result.text)
        port = unique_port()
        if config is None:
            common = ["ibv_xsrq_pingpong", "-n", "5", "-s", "5000", "-p", port]
            pair = engine.pair([*common, "-d", "uib0", "-c", "1"], [*common, "-d", "uib1", "127.0.0.1"], port, 30)
        else:  # of its multicast groups perftest asks a subnet manager, where there is one
            common = ["ib_send_lat", "-F", "-c", "UD", "-g", "-s", "64", "-n", "5", "-x", "0", "-p", port]
            pair = engine.pair([*common, "-d", "uib0"], [*common, "-d", "uib1", "127.0.0.1"], port, 30)
        expect(pair.ok, pair.text)
        printed = capture.stop()
        expect(" 0 dropped" in printed, printed)
        rows = dissected(file)
        expect(f"{len(rows)} packets captured" in printed, f"{len(rows)} packets in the file; {printed}")
        count = check_crcs(file, rows)
        check_fields(rows, [json.loads(line) for line in result.text.splitlines() if line.startswith("{")])
        opcodes = {int(row["opcode"]) for row in rows}
        wanted = {RC | code for code in CONNECTED + RC_ONLY} | {UC | code for code in CONNECTED} | {UD | 4, UD | 5}
        if config is None:
            wanted |= {XRC | 0, XRC | 1, XRC | 2, XRC | 17}
        expect(wanted <= opcodes, f"operations that are missing: {sorted(wanted - opcodes)}")
        expect(any(row["ack"] and int(row["ack"]) == ACK_NAK and int(row["error_code"]) == 0 for row in rows),
               "a NAK for a PSN sequence error")
        group = [row for row in rows if row["destqp"] and int(row["destqp"], 16) == 0xFFFFFF]
        if config is not None:
            expect(group and all(row["dst"].startswith(("33:33:", "01:00:5e:")) for row in group), "MAC addresses of groups")
            macs = {device["ports"][0]["mac"] for device in engine.status()["devices"]}
            expect({row["dst"] for row in rows if row not in group} <= macs, "MAC addresses of the engine's ports")
        say(f"passed: {'InfiniBand' if config is None else 'Ethernet'}: {count} packets, {len(opcodes)} operations; ICRC"
            f"{' and VCRC' if config is None else ''} of each computed anew")


def filters_and_ends():
    with Engine() as engine:
        def sends():
            result = engine.run(["/usr/bin/python3", "-B", PROGRAM, "sends", "20", "600"], 30)
            expect(result.ok, result.text)
            return json.loads(result.text.splitlines()[-1])["qps"]

        file = engine.directory / "some.pcapng"
        capture = Capture(engine, "-w", file, "--device", "uib1", "--snaplen", "40")
        second = subprocess.run([str(part) for part in engine.uib("capture", "-w", "/dev/null")], env=engine.environment(),
                                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20)
        expect(second.returncode == 1 and "another capture is running" in second.stderr, second.stderr)
        qps = sends()
        capture.stop(signal.SIGTERM)
        rows = tshark(file, "-T", "fields", "-e", "frame.interface_name", "-e", "frame.cap_len").splitlines()
        expect(len(rows) == 40 and {row.split("\t")[0] for row in rows} == {"uib1"}, f"20 SENDs, 20 ACKs: {rows}")
        expect(max(int(row.split("\t")[1]) for row in rows) <= 56, f"kept lengths: {rows}")

        capture = Capture(engine, "-w", file, "--qp", str(qps[1] + 2), "--device", "uib1")
        expect(sends()[1] == qps[1] + 2, "the next queue pair's number")
        expect("40 packets captured" in capture.stop(), "to and from one queue pair")

        capture = Capture(engine, "-w", file, "--count", "7")
        sends()
        expect(capture.process.wait(10) == 0 and "7 packets captured" in capture.process.output(), capture.process.output())

        # A command that is killed leaves a file that is whole, and the next may begin.
        capture = Capture(engine, "-w", file)
        sends()
        capture.process.send(signal.SIGKILL)
        capture.process.wait(10)
        wait_until(lambda: file.stat().st_size > 0 and len(packets_of(file)) == 80, 5, "what was captured is in the file")

        read_end = subprocess.Popen(["tshark", "-n", "-r", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                    stderr=subprocess.DEVNULL, text=True)
        live = subprocess.Popen([str(part) for part in engine.uib("capture", "-w", "-", "--count", "80")], stdin=subprocess.DEVNULL,
                                env=engine.environment(), stdout=read_end.stdin, stderr=subprocess.PIPE, text=True)
        read_end.stdin.close()
        expect("capturing to standard output" in live.stderr.readline(), "a capture into a pipe")
        sends()
        expect(live.wait(10) == 0, "a capture into a pipe ends at its count")
        live.stderr.close()
        expect(len(read_end.stdout.read().splitlines()) == 80 and read_end.wait(20) == 0, "80 packets through a pipe")
        say("passed: device, queue pair, length and number of packets; SIGTERM, SIGKILL, pipe into tshark")


def test():
    need_tools("tshark", "ib_send_lat", "ibv_xsrq_pingpong")
    capture_of_everything(None)
    capture_of_everything(ETHERNET)
    filters_and_ends()


if __name__ == "__main__":
    uibtest.main(test)
