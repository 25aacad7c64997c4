"""The control protocol by hand (engine/ipc/control.h), for tests that break it: packing of messages, a raw connection."""

import ctypes
import os
import pathlib
import re
import socket
import struct

MAGIC = 0x5549424D
VERSION = 2
REQUEST = struct.Struct("<IHHII")
REPLY = struct.Struct("<IHHIIiI")
MAX_BYTES = 4096
MAX_DESCRIPTORS = 8


HEADER = pathlib.Path(__file__).parents[2] / "engine" / "ipc" / "control.h"


def operations():
    """The numbers of enum class Operation by its names: kHello is HELLO."""
    body = re.search(r"enum class Operation [^{]*\{(.*?)\};", HEADER.read_text(), re.DOTALL).group(1)
    names = re.findall(r"^ *k(\w+)", re.sub(r"//.*", "", body), re.MULTILINE)
    return {re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper(): number for number, name in enumerate(names, 1)}


OPERATIONS = operations()
(HELLO, STATUS, QUERY_DEVICE, QUERY_PORT, IMPORT_CONTEXT, ALLOC_PD, DEALLOC_PD, REG_MR, CREATE_CQ, CREATE_QP,
 OPERATION_END) = (OPERATIONS[name] for name in (
     "HELLO", "STATUS", "QUERY_DEVICE", "QUERY_PORT", "IMPORT_CONTEXT", "ALLOC_PD", "DEALLOC_PD", "REG_MR", "CREATE_CQ",
     "CREATE_QP", "OPERATION_END"))


class Closed(Exception):
    """The engine closed the connection."""


def request(operation, body=b"", tag=1, magic=MAGIC, version=VERSION, length=None):
    return REQUEST.pack(magic, version, operation, REQUEST.size + len(body) if length is None else length, tag) + body


class Connection:
    """A raw connection; keeps what it hands to the engine open, and closes what it gets."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(10)
        self.socket.connect(str(path))
        self.pipe = os.pipe()
        self.helper = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.probe = (ctypes.c_uint64 * 2)(0x1234, 0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
        for descriptor in self.pipe:
            os.close(descriptor)
        for end in self.helper:
            end.close()

    def send(self, message, descriptors=()):
        try:
            socket.send_fds(self.socket, [message], list(descriptors))
        except (BrokenPipeError, ConnectionResetError) as error:
            raise Closed from error

    def receive(self):
        """(status, body) of the next reply."""
        try:
            data, descriptors, _, _ = socket.recv_fds(self.socket, MAX_BYTES, 64)
        except ConnectionResetError as error:
            raise Closed from error
        for descriptor in descriptors:
            os.close(descriptor)
        if not data:
            raise Closed
        header = REPLY.unpack_from(data)
        return header[5], data[REPLY.size:]

    def hello_descriptors(self):
        return [self.socket.fileno(), self.pipe[1], self.helper[1].fileno()]

    def hello_body(self, device=b"uib0", flags=0):
        return struct.pack("<II64sQQ", flags, 0, device, ctypes.addressof(self.probe), 0x1234)

    def hello(self):
        self.send(request(HELLO, self.hello_body()), self.hello_descriptors())
        status, _ = self.receive()
        if status != 0:
            raise AssertionError(f"a right hello is refused: errno {status}")
        return self

    def closed_within(self, seconds=5):
        """Reads on until the engine closes; False if it does not."""
        self.socket.settimeout(seconds)
        try:
            while True:
                self.receive()
        except Closed:
            return True
        except TimeoutError:
            return False
