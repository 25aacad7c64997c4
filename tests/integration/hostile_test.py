#!/usr/bin/python3
"""Bad input. Control messages that are cut, too long, of another protocol, out of order, with too many descriptors, random; rings
full of garbage (ring_vandal); memory that is not there and limits that are exceeded (refusals). The engine serves another
client after each.

  --messages N   random control messages (default 5000)
  --seeds N      each ring scenario with so many seeds (default 2)
  --seed N       the first seed
  --full         also exhausts every kind of object
"""

import argparse
import os
import pathlib
import random
import struct

import uibtest
from control_protocol import (ALLOC_PD, CREATE_CQ, CREATE_QP, HELLO, IMPORT_CONTEXT, MAX_BYTES, OPERATION_END, QUERY_PORT,
                              REG_MR, STATUS, Closed, Connection, request)
from uibtest import Engine, expect, say

TESTS = pathlib.Path(uibtest.BUILD) / "tests" / "integration"


def closes(name, first_hello, message, descriptors=lambda _: []):
    """A check: after the message the engine closes the connection."""
    def check(engine):
        with Connection(engine.socket) as connection:
            if first_hello:
                connection.hello()
            try:
                connection.send(message(connection), descriptors(connection))
                closed = connection.closed_within()
            except Closed:
                closed = True
            expect(closed, f"{name}: the engine keeps the connection")
    return name, check


def refuses_or_closes(name, message, descriptors=lambda _: []):
    """A check: a first message that is no hello the engine can use gets an errno, or the connection is closed."""
    def check(engine):
        with Connection(engine.socket) as connection:
            try:
                connection.send(message(connection), descriptors(connection))
                status, _ = connection.receive()
            except Closed:
                return
            expect(status > 0, f"{name}: answered with status {status}")
    return name, check


def refuses(name, message, descriptors=lambda _: []):
    """A check: after a hello the message is answered with an errno, and the next one with success."""
    def check(engine):
        with Connection(engine.socket) as connection:
            connection.hello()
            connection.send(message(connection), descriptors(connection))
            status, _ = connection.receive()
            expect(status > 0, f"{name}: answered with status {status}")
            connection.send(request(ALLOC_PD, tag=3))
            status, _ = connection.receive()
            expect(status == 0, f"{name}: a good request after it gets errno {status}")
    return name, check


def hello_message(**more):
    return lambda connection: request(HELLO, connection.hello_body(), **more)


def many_pipes(count):
    def descriptors(connection):
        return connection.hello_descriptors() + [connection.pipe[0]] * (count - 3)
    return descriptors


RIGHT = Connection.hello_descriptors
QP_BODY = struct.Struct("<Q14I")
CQ_BODY = struct.Struct("<QIIII")
MR_BODY = struct.Struct("<IIQQQIIQ")

CHECKS = [
    closes("an empty header", False, lambda _: b"\x01"),
    closes("a header that is cut", False, lambda _: request(HELLO)[:15]),
    closes("a hello that is cut", False, lambda c: request(HELLO, c.hello_body())[:-4], RIGHT),
    closes("a hello without its body", False, lambda _: request(HELLO), RIGHT),
    closes("a wrong magic", False, hello_message(magic=0x12345678), RIGHT),
    closes("a wrong version", False, hello_message(version=999), RIGHT),
    closes("a length that lies", False, hello_message(length=17), RIGHT),
    closes("a length beyond all", False, hello_message(length=0xFFFFFFFF), RIGHT),
    closes("a request before the hello", False, lambda _: request(ALLOC_PD)),
    closes("a first tag of 7", False, hello_message(tag=7), RIGHT),
    closes("a hello that is too long", False, lambda c: request(HELLO, c.hello_body() + bytes(3000)), RIGHT),
    closes("a message of 64 KiB", False, lambda _: request(HELLO, bytes(65536))),
    refuses_or_closes("a hello without descriptors", hello_message()),
    refuses_or_closes("a hello for a device of nobody", lambda c: request(HELLO, c.hello_body(b"nobody")), RIGHT),
    refuses_or_closes("a hello for a device without end", lambda c: request(HELLO, c.hello_body(b"x" * 64)), RIGHT),
    closes("a second hello", True, hello_message(tag=2), RIGHT),
    closes("an unknown operation", True, lambda _: request(OPERATION_END + 5, tag=2)),
    closes("operation 0", True, lambda _: request(0, tag=2)),
    closes("a tag that jumps", True, lambda _: request(ALLOC_PD, tag=9)),
    closes("a tag that is used again", True, lambda _: request(ALLOC_PD, tag=1)),
    closes("a body that is too short", True, lambda _: request(QUERY_PORT, b"\x01", tag=2)),
    closes("a body that is too long", True, lambda _: request(QUERY_PORT, bytes(64), tag=2)),
    closes("a body where none belongs", True, lambda _: request(ALLOC_PD, bytes(8), tag=2)),
    closes("30 descriptors", False, hello_message(), many_pipes(30)),
    closes("9 descriptors", False, hello_message(), many_pipes(9)),
    closes("200 descriptors", True, lambda _: request(ALLOC_PD, tag=2), many_pipes(200)),
    refuses("port 0", lambda _: request(QUERY_PORT, struct.pack("<II", 0, 0), tag=2)),
    refuses("port 200", lambda _: request(QUERY_PORT, struct.pack("<II", 200, 0), tag=2)),
    refuses("a PD of nobody", lambda _: request(ALLOC_PD + 1, struct.pack("<II", 4711, 0), tag=2)),
    refuses("a CQ of no entries", lambda _: request(CREATE_CQ, CQ_BODY.pack(0, 0, 0, 0, 0), tag=2)),
    refuses("a CQ of all entries", lambda _: request(CREATE_CQ, CQ_BODY.pack(0, 0xFFFFFFFF, 0, 0, 0), tag=2)),
    refuses("a CQ on a channel of nobody", lambda _: request(CREATE_CQ, CQ_BODY.pack(0, 16, 99, 0, 0), tag=2)),
    refuses("a QP without PD and CQ", lambda _: request(CREATE_QP, QP_BODY.pack(0, *[77] * 14), tag=2)),
    refuses("a region without PD", lambda _: request(REG_MR, MR_BODY.pack(9, 1, 4096, 4096, 4096, 0, 0, 0), tag=2)),
]


def random_messages(engine, count, seed):
    """Random bytes, and right headers with random bodies, on connections with and without a hello."""
    choice = random.Random(seed)
    sent = connections = 0
    while sent < count:
        connections += 1
        with Connection(engine.socket) as connection:
            connection.socket.settimeout(10)
            tag = 1
            try:
                if choice.random() < 0.8:
                    connection.hello()
                    tag = 2
                while sent < count:
                    sent += 1
                    body = choice.randbytes(choice.choice((0, 4, 8, 16, 24, 32, 48, 56, 64, choice.randrange(MAX_BYTES))))
                    if choice.random() < 0.7:
                        message = request(choice.randrange(1, OPERATION_END), body, tag)
                    else:
                        message = body or b"\x00"
                    descriptors = [connection.pipe[1]] * choice.choice((0, 0, 0, 1, 2, 8))
                    connection.send(message, descriptors)
                    connection.receive()
                    tag += 1
            except (Closed, OSError):
                pass
    say(f"{sent} random messages on {connections} connections, seed {seed}")


def floods(engine):
    """Requests without reading a reply; many connections; connections that say nothing."""
    with Connection(engine.socket) as connection:
        connection.hello()
        connection.socket.setblocking(False)
        tag = 2
        try:
            for tag in range(2, 20002):
                connection.send(request(ALLOC_PD, tag=tag))
        except (BlockingIOError, Closed):
            pass
        say(f"{tag - 2} requests sent without reading a reply")
        engine.expect_healthy()
    silent = []
    try:
        for _ in range(300):
            silent.append(Connection(engine.socket))
        engine.expect_healthy()
    finally:
        for connection in silent:
            connection.__exit__()
    say("300 connections that say nothing")


def import_of_strangers(engine):
    with Connection(engine.socket) as owner, Connection(engine.socket) as other:
        owner.hello()
        other.hello()
        for descriptor in (other.pipe[0], os.open("/dev/null", os.O_RDWR)):
            try:
                other.send(request(IMPORT_CONTEXT, tag=2), [descriptor])
                status, _ = other.receive()
                expect(status > 0, f"a context is imported by a descriptor that shows none: status {status}")
            except Closed:
                break


def test():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=5000)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--full", action="store_true")
    arguments = parser.parse_args()
    failures = []
    with Engine(log_level="warning") as engine:
        def attempt(name, action):
            try:
                action()
                expect(engine.process.running(), f"the engine died of it: {engine.process.output()[-3000:]}")
                say(f"ok     {name}")
            except (uibtest.Failure, TimeoutError, AssertionError) as failure:
                failures.append(name)
                say(f"FAILED {name}: {failure}")
                if not engine.process.running():
                    raise

        for name, check in CHECKS:
            attempt(name, lambda check=check: check(engine))
        attempt("serves after the control messages", engine.expect_healthy)
        attempt("imports by strangers", lambda: import_of_strangers(engine))
        attempt("random messages", lambda: random_messages(engine, arguments.messages, arguments.seed))
        attempt("serves after random messages", engine.expect_healthy)
        attempt("floods", lambda: floods(engine))
        attempt("no objects left", engine.expect_no_objects)

        def play(scenario, seed):
            result = engine.run([TESTS / "ring_vandal", scenario, str(seed), "uib0"], 60)
            expect(result.ok, f"ring_vandal ended with {result.status}: {result.text}")
            engine.expect_healthy()

        scenarios = engine.run([TESTS / "ring_vandal"], 20).text.split()
        expect(len(scenarios) >= 10, f"ring_vandal lists {scenarios}")
        for scenario in scenarios:
            for seed in range(arguments.seed, arguments.seed + arguments.seeds):
                attempt(f"rings: {scenario} seed {seed}", lambda: play(scenario, seed))
        attempt("no objects left after the rings", engine.expect_no_objects)

        def refusals(*which):
            result = engine.run([TESTS / "refusals", *which], 600)
            say(result.text)
            expect(result.ok, f"refusals {' '.join(which)} ended with {result.status}")

        attempt("refusals: memory", lambda: refusals("memory"))
        attempt("refusals: sizes", lambda: refusals("sizes"))
        attempt("refusals: exhaust", lambda: refusals("exhaust", *(["--all"] if arguments.full else [])))
        attempt("no objects left at the end", engine.expect_no_objects)
        attempt("serves at the end", engine.expect_healthy)
        engine.stop()
    expect(not failures, f"{len(failures)} checks failed: {', '.join(failures)}")


if __name__ == "__main__":
    uibtest.main(test)
