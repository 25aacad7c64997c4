#!/usr/bin/python3
"""An engine that may have no more memory than it has: the requests that need more are refused (ENOMEM) and change nothing, the
session that made them and all others live on, new ones are let in or turned away, and once there is memory again the same requests succeed.
"""

import contextlib
import errno
import resource

import uibtest
from control_protocol import ALLOC_PD, HELLO, QUERY_DEVICE, Closed, Connection, request
from uibtest import Engine, Failure, expect, say

MOST_PDS = 65536  # what a device has: also refused with ENOMEM, and not what is tested here


def virtual_bytes(pid):
    with open(f"/proc/{pid}/statm") as sizes:
        return int(sizes.read().split()[0]) * resource.getpagesize()


class Client(Connection):
    tag = 1  # of the hello

    def ask(self, operation, body=b""):
        """Status of the reply."""
        self.tag += 1
        self.send(request(operation, body, self.tag))
        return self.receive()[0]


def fill(client):
    """Makes objects until one is refused; their number."""
    for count in range(MOST_PDS):
        status = client.ask(ALLOC_PD)
        if status != 0:
            expect(status == errno.ENOMEM, f"refused with {errno.errorcode.get(status, status)}, not ENOMEM")
            return count
    raise Failure(f"{MOST_PDS} objects fit into an engine that may have no more memory")


def test():
    with Engine() as engine, Client(engine.socket) as greedy, Client(engine.socket) as other:
        greedy.hello()
        other.hello()
        before = resource.prlimit(engine.pid, resource.RLIMIT_AS)
        resource.prlimit(engine.pid, resource.RLIMIT_AS, (virtual_bytes(engine.pid), before[1]))
        made = fill(greedy)
        expect("alloc_pd: std::bad_alloc" in engine.process.output(), "refused, but not for want of memory")
        for _ in range(100):
            expect(greedy.ask(ALLOC_PD) == errno.ENOMEM, "the next object is there")
            expect(greedy.ask(QUERY_DEVICE) == 0, "a request that needs no memory fails")
            expect(other.ask(QUERY_DEVICE) == 0, "another session suffers")
        for _ in range(20):
            with contextlib.suppress(Closed), Client(engine.socket) as latecomer:
                latecomer.send(request(HELLO, latecomer.hello_body()), latecomer.hello_descriptors())
                expect(latecomer.receive()[0] in (0, errno.ENOMEM), "a hello is refused, and not for want of memory")
        resource.prlimit(engine.pid, resource.RLIMIT_AS, before)
        expect(engine.objects()["pd"] == made, f"{engine.objects()['pd']} PDs are counted of {made} that were made")
        expect(greedy.ask(ALLOC_PD) == 0 and other.ask(ALLOC_PD) == 0, "no objects although there is memory again")
        say(f"{made} objects, then ENOMEM; none was lost and the engine went on")
        greedy.socket.close()
        other.socket.close()
        engine.expect_no_objects()
        engine.expect_healthy()
        engine.stop()


if __name__ == "__main__":
    uibtest.main(test)
