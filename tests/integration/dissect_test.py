#!/usr/bin/python3
"""Every operation of RC, UC, RD, UD and XRC in a capture, over InfiniBand links and RoCE v2, read by two that are not of uib.

This script builds each packet anew, from the specification's tables (IBA 9.2 to 9.4, A17.3), and compares it with the file's byte
for byte from the BTH on; the CRCs it computes bit by bit over the whole packet (capture_test.py).

tshark dissects the file: nothing is malformed, no expert says error, and each header field that it shows has the value that was
meant. What tshark 4.0 does not do, and what is done about it:
  - of the CRCs it knows the places, infiniband.invariant.crc and infiniband.variant.crc, and computes neither: packets whose
    CRCs are damaged are as good to it. This test shows that, so that nobody relies on it;
  - of XRC and ATOMIC WRITE it shows the BTH and nothing behind it;
  - it takes RD's codes for those of a vendor's transport (it says "DC") with 8 bytes of its own behind the BTH, and finds short
    packets malformed. So it gets the RD packets once more with 8 bytes put in: then it reads RDETH, DETH and the rest, but for
    the RDETH of an Acknowledge, which it takes for the AETH, and what RESYNC has.
"""

import pathlib
import struct
import subprocess
import tempfile

import uibtest
from capture_test import check_infiniband_crcs, check_roce_crc, packets_of, tshark
from uibtest import expect, need_tools, say

GENERATOR = uibtest.BUILD / "tests" / "integration" / "every_operation"
RC, UC, RD, UD, XRC = 0x00, 0x20, 0x40, 0x60, 0xA0
MTU, ODD = 256, 21
ATOMIC_WRITE, RD_ACKNOWLEDGE, RD_RESYNC = 0x1D, 0x51, 0x55

# Headers of the operation, and the bytes of its payload.
OPERATIONS = {
    0x00: ((), MTU), 0x01: ((), MTU), 0x02: ((), ODD), 0x03: (("immdt",), ODD), 0x04: ((), ODD), 0x05: (("immdt",), ODD),
    0x06: (("reth",), MTU), 0x07: ((), MTU), 0x08: ((), ODD), 0x09: (("immdt",), ODD), 0x0A: (("reth",), ODD),
    0x0B: (("reth", "immdt"), ODD),
    0x0C: (("reth",), 0), 0x0D: (("aeth",), MTU), 0x0E: ((), MTU), 0x0F: (("aeth",), ODD), 0x10: (("aeth",), ODD),
    0x11: (("aeth",), 0), 0x12: (("aeth", "atomicacketh"), 0), 0x13: (("atomiceth",), 0), 0x14: (("atomiceth",), 0),
    0x15: ((), 0), 0x16: (("ieth",), ODD), 0x17: (("ieth",), ODD), ATOMIC_WRITE: (("reth",), 8),
}
RESPONSES = range(0x0D, 0x13)
SERVICES = {
    RC: [code for code in OPERATIONS if code != 0x15],
    UC: list(range(0x0C)),
    RD: [code for code in OPERATIONS if code not in (0x16, 0x17)],
    UD: [0x04, 0x05],
    XRC: [code for code in OPERATIONS if code != 0x15],
}
HEADERS = {
    "rdeth": bytes.fromhex("00e1e2e3"), "deth": bytes.fromhex("31323334 00414243"), "xrceth": bytes.fromhex("00e1e2e3"),
    "reth": bytes.fromhex("6162636465666768 71727374 0000a1a2"),
    "atomiceth": bytes.fromhex("6162636465666768 71727374 8182838485868788 9192939495969798"),
    "aeth": bytes.fromhex("0a515253"), "atomicacketh": bytes.fromhex("b1b2b3b4b5b6b7b8"), "immdt": bytes.fromhex("c1c2c3c4"),
    "ieth": bytes.fromhex("d1d2d3d4"),
}
# What tshark shows of each header, and what it should show.
SHOWN = {
    "rdeth": {"rdeth.eecnxt": 0xE1E2E3}, "deth": {"deth.q_key": 0x31323334, "deth.srcqp": 0x414243},
    "reth": {"reth.va": 0x6162636465666768, "reth.r_key": 0x71727374, "reth.dmalen": 0xA1A2},
    "atomiceth": {"reth.va": 0x6162636465666768, "reth.r_key": 0x71727374, "atomiceth.swapdt": 0x8182838485868788,
                  "atomiceth.cmpdt": 0x9192939495969798},
    "aeth": {"aeth.syndrome.credit_count": 10, "aeth.msn": 0x515253},
    "atomicacketh": {"atomicacketh.origremdt": 0xB1B2B3B4B5B6B7B8},
    "immdt": {"immdt": 0xC1C2C3C4}, "ieth": {"ieth": 0xD1D2D3D4}, "xrceth": {},
}
ALWAYS = ("bth.opcode", "bth.padcnt", "bth.p_key", "bth.destqp", "bth.psn", "bth.se", "bth.a", "invariant.crc", "variant.crc")
FIELDS = [*ALWAYS, *sorted({field for header in SHOWN.values() for field in header})]
LINKS = ("ib", "ib+grh", "roce4", "roce6")


def headers_of(code):
    service, operation = code & 0xE0, code & 0x1F
    response = operation in RESPONSES
    first = {RD: ("rdeth",) if response else ("rdeth", "deth"), UD: ("deth",), XRC: () if response else ("xrceth",)}
    return (*first.get(service, ()), *OPERATIONS[operation][0])


def transport_of(code):
    """BTH, extension headers, payload and pad."""
    length = OPERATIONS[code & 0x1F][1]
    pad = -length % 4
    bth = struct.pack(">BBHII", code, 0xC0 | pad << 4, 0x8001, 0x112233, 0x80FEDC00 | code)
    payload = bytes((i * 7 + 1) & 0xFF for i in range(length))
    return bth + b"".join(HEADERS[name] for name in headers_of(code)) + payload + bytes(pad)


def transport_at(frame, ethernet):
    """Where the BTH starts."""
    if not ethernet:
        return 48 if frame[1] & 3 == 3 else 8
    return 42 if frame[12:14] == b"\x08\x00" else 62


def check_bytes(packets, codes):
    expect(len(packets) == len(codes) * len(LINKS), f"{len(packets)} packets of {len(codes)} operations on {len(LINKS)} links")
    for number, (frame, ethernet) in enumerate(packets):
        code = codes[number % len(codes)]
        wanted = transport_of(code)
        at = transport_at(frame, ethernet)
        got = frame[at:at + len(wanted)]
        expect(got == wanted, f"operation {code:#04x}\nis     {got.hex()}\nshould {wanted.hex()}")
        expect(len(frame) == max(60 if ethernet else 0, at + len(wanted) + (4 if ethernet else 6)), f"length of {frame.hex()}")
        (check_roce_crc if ethernet else check_infiniband_crcs)(frame, None)


def rows_of(file):
    arguments = [part for field in FIELDS for part in ("-e", f"infiniband.{field}")]
    return [dict(zip(FIELDS, line.split("\t")))
            for line in tshark(file, "-T", "fields", "-E", "occurrence=f", *arguments).split("\n")[:-1]]


def number(text):
    return int(text, 16) if text.startswith("0x") or not text.isdecimal() else int(text)


def check_dissection(rows, packets, codes, inserted=0):
    """`inserted`: bytes behind the BTH for tshark's sake. Returns how many packets were read to their end."""
    shown = 0
    for position, (row, (frame, ethernet)) in enumerate(zip(rows, packets)):
        code = codes[position % len(codes)]
        what = f"operation {code:#04x} on {LINKS[position // len(codes)]}: {row}"
        pad = -OPERATIONS[code & 0x1F][1] % 4
        basic = {"bth.opcode": code, "bth.padcnt": pad, "bth.p_key": 0x8001, "bth.destqp": 0x112233, "bth.psn": 0xFEDC00 | code,
                 "bth.se": 1, "bth.a": 1}
        for field, value in basic.items():
            expect(number(row[field]) == value, f"{field} of {what}")
        if unknown_to_tshark(code, inserted):
            continue
        shown += 1
        for header in headers_of(code):
            for field, value in SHOWN[header].items():
                expect(row[field] != "" and int(row[field], 16 if header in ("immdt", "ieth") else 0) == value, f"{field} of {what}")
        tail = frame[:-2] if not ethernet else frame[:transport_at(frame, True) + len(transport_of(code)) + 4]
        expect(int(row["invariant.crc"], 16) == int.from_bytes(tail[-4:], "big"), f"ICRC of {what}")
    return shown


def unknown_to_tshark(code, inserted):
    if code & 0xE0 == RD and (not inserted or code in (RD_ACKNOWLEDGE, RD_RESYNC)):
        return True
    return code & 0xE0 == XRC or code & 0x1F == ATOMIC_WRITE


def nothing_is_wrong(file, but="frame.number == 0"):
    bad = tshark(file, "-Y", f"(_ws.malformed || _ws.expert.severity >= 0x800000) && !({but})")
    expect(bad == "", f"tshark finds fault with:\n{bad[:4000]}")


def write_infiniband(file, packets):
    """A capture of packets from LRH to VCRC, in ERF records (link type 197) of type 21."""
    with file.open("wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 197))
        for packet in packets:
            length = 16 + len(packet)
            out.write(struct.pack("<IIII", 0, 0, length, length))
            out.write(struct.pack("<Q", 0) + struct.pack(">BBHHH", 21, 4, length, 0, len(packet)) + packet)


def with_vendor_header(packet):
    """Room for tshark's 8 bytes behind the BTH, and LRH:PktLen in accord."""
    words = struct.unpack_from(">H", packet, 4)[0]
    return packet[:4] + struct.pack(">H", words + 2) + packet[6:20] + bytes(8) + packet[20:]


def test():
    need_tools("tshark")
    codes = sorted(service | operation for service, operations in SERVICES.items() for operation in operations)
    with tempfile.TemporaryDirectory(prefix="uib-test-") as directory:
        file = pathlib.Path(directory) / "all.pcapng"
        done = subprocess.run([str(GENERATOR), str(file)], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20)
        expect(done.returncode == 0, done.stderr)
        packets = packets_of(file)
        check_bytes(packets, codes)
        say(f"passed: {len(packets)} packets of {len(codes)} operations, byte for byte, CRCs computed anew")

        nothing_is_wrong(file, f"infiniband.bth.opcode >= {RD} && infiniband.bth.opcode < {UD}")
        rows = rows_of(file)
        expect(len(rows) == len(packets), f"{len(rows)} packets from tshark")
        shown = check_dissection(rows, packets, codes)
        say(f"passed: tshark shows every BTH, and the headers behind it of {shown} packets")

        datagrams = [code for code in codes if code & 0xE0 == RD]
        packets = [with_vendor_header(packets[codes.index(code)][0]) for code in datagrams]
        file = file.with_name("rd.pcap")
        write_infiniband(file, packets)
        nothing_is_wrong(file)
        shown = check_dissection(rows_of(file), [(packet, False) for packet in packets], datagrams, 8)
        say(f"passed: tshark shows the headers of {shown} RD packets")

        damaged = [packet[:-6] + bytes(byte ^ 0x55 for byte in packet[-6:]) for packet in packets]
        write_infiniband(file, damaged)
        nothing_is_wrong(file)
        say("as expected: tshark takes packets with wrong CRCs")


if __name__ == "__main__":
    uibtest.main(test)
