"""Run by capture_test.py and fault_test.py where the devices are to be seen: traffic between uib0 and uib1 whose numbers the
caller knows, by Debian's pyverbs. Prints what it did as lines of JSON.

  tap_program.py all                  every operation of RC, UC and UD, messages of one packet and of three
  tap_program.py sends COUNT [BYTES]  SENDs over one RC connection, their bytes compared
  tap_program.py write                one RDMA WRITE
  tap_program.py port                 what a program sees of a port that goes down and comes back
"""

import json
import random
import struct
import sys
import time

import pyverbs.enums as e
from pyverbs.addr import AH, AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR, MW, MWBindInfo
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPEx, QPInitAttr, QPInitAttrEx
from pyverbs.wr import SGE, RecvWR, SendWR

ACCESS = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_ATOMIC | \
    e.IBV_ACCESS_MW_BIND
SIZE = 65536
MTU = 1024
PSN = 0xFFFFF0  # wraps soon
QKEY = 0x1234
OPERATIONS = e.IBV_QP_EX_WITH_SEND | e.IBV_QP_EX_WITH_SEND_WITH_IMM | e.IBV_QP_EX_WITH_RDMA_WRITE | \
    e.IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM
RC_ONLY = e.IBV_QP_EX_WITH_SEND_WITH_INV | e.IBV_QP_EX_WITH_RDMA_READ | e.IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | \
    e.IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | e.IBV_QP_EX_WITH_BIND_MW | e.IBV_QP_EX_WITH_ATOMIC_WRITE


def say(**facts):
    print(json.dumps(facts), flush=True)


def expect(condition, text):
    if not condition:
        sys.exit(f"FAILED: {text}")


class Side:
    """A device with memory, and a queue pair for each service."""

    def __init__(self, name):
        self.context = Context(name=name)
        port = self.context.query_port(1)
        self.lid, self.ethernet = port.lid, port.link_layer == e.IBV_LINK_LAYER_ETHERNET
        self.gid = self.context.query_gid(1, 0)
        self.pd = PD(self.context)
        self.cq = CQ(self.context, 512)
        self.region = MR(self.pd, SIZE, ACCESS)

    def path(self, peer):
        route = GlobalRoute(dgid=peer.gid, sgid_index=0, hop_limit=4)
        return AHAttr(dlid=peer.lid, gr=route, is_global=1 if self.ethernet else 0, port_num=1)

    def connected(self, kind):
        attributes = QPInitAttrEx(qp_type=kind, scq=self.cq, rcq=self.cq, cap=QPCap(64, 64, 1, 1), pd=self.pd,
                                  comp_mask=e.IBV_QP_INIT_ATTR_PD | e.IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                  send_ops_flags=OPERATIONS | (RC_ONLY if kind == e.IBV_QPT_RC else 0))
        return QPEx(self.context, attributes)

    def connect(self, qp, peer, peer_qp, retries=7, timeout=14):
        attributes = QPAttr(port_num=1, path_mtu=e.IBV_MTU_1024)
        attributes.qp_access_flags = ACCESS
        attributes.dest_qp_num = peer_qp.qp_num
        attributes.rq_psn = attributes.sq_psn = PSN
        attributes.max_dest_rd_atomic = attributes.max_rd_atomic = 1
        attributes.min_rnr_timer, attributes.timeout = 12, timeout
        attributes.retry_cnt, attributes.rnr_retry = retries, 7
        attributes.ah_attr = self.path(peer)
        qp.to_rts(attributes)

    def receive(self, qp):
        qp.post_recv(RecvWR(wr_id=8, num_sge=1, sg=[SGE(self.region.buf, SIZE, self.region.lkey)]))

    def poll(self, count, seconds=20):
        done, end = [], time.monotonic() + seconds
        while len(done) < count:
            number, completions = self.cq.poll(count - len(done))
            done += completions[:number]
            expect(time.monotonic() < end, f"{count} completions, got {len(done)}")
            if not number:
                time.sleep(0.0005)
        return done

    def succeed(self, count):
        for completion in self.poll(count):
            expect(completion.status == e.IBV_WC_SUCCESS, f"completion status {completion.status}")


def pair(kind, first, second, **options):
    qps = first.connected(kind), second.connected(kind)
    first.connect(qps[0], second, qps[1], **options)
    second.connect(qps[1], first, qps[0], **options)
    return qps


def post(side, qp, length, operation, *arguments):
    qp.wr_start()
    qp.wr_id, qp.wr_flags = 7, e.IBV_SEND_SIGNALED
    getattr(qp, f"wr_{operation}")(*arguments)
    if length:
        qp.wr_set_sge(SGE(side.region.buf, length, side.region.lkey))
    qp.wr_complete()


def bound_window(side, qp):
    """A window for the peer to invalidate."""
    window = MW(side.pd, e.IBV_MW_TYPE_2)
    qp.wr_start()
    qp.wr_id, qp.wr_flags = 9, e.IBV_SEND_SIGNALED
    rkey = (window.rkey & ~0xFF) | ((window.rkey + 1) & 0xFF)  # the next variant of the key, as ibv_inc_rkey has it
    qp.wr_bind_mw(window, rkey, MWBindInfo(side.region, side.region.buf, 64, e.IBV_ACCESS_REMOTE_WRITE))
    qp.wr_complete()
    side.succeed(1)
    return window, rkey


def connected_operations(kind, first, second):
    qps = pair(kind, first, second)
    where = (second.region.rkey, second.region.buf)
    reliable = kind == e.IBV_QPT_RC
    for length in (17, MTU, 2 * MTU + 5):  # Only, Only of a whole MTU, First Middle Last
        second.receive(qps[1])
        post(first, qps[0], length, "send")
        second.receive(qps[1])
        post(first, qps[0], length, "send_imm", 0x01020304)
        post(first, qps[0], length, "rdma_write", *where)
        second.receive(qps[1])
        post(first, qps[0], length, "rdma_write_imm", *where, 0x05060708)
        first.succeed(4)
        second.succeed(3)
        if not reliable:
            continue
        post(first, qps[0], length, "rdma_read", *where)
        first.succeed(1)
    if reliable:
        post(first, qps[0], 8, "atomic_fetch_add", *where, 0x1111)
        post(first, qps[0], 8, "atomic_cmp_swp", *where, 0x2222, 0x3333)
        post(first, qps[0], 0, "atomic_write", *where, struct.pack("<Q", 0x4444))
        first.succeed(3)
        for length in (17, 2 * MTU + 5):
            window, rkey = bound_window(second, qps[1])
            second.receive(qps[1])
            post(first, qps[0], length, "send_inv", rkey)
            first.succeed(1)
            second.succeed(1)
            window.close()
        # No receive is there: RNR NAK, then the receive comes and the SEND with it.
        post(first, qps[0], 33, "send")
        time.sleep(0.05)
        second.receive(qps[1])
        first.succeed(1)
        second.succeed(1)
    say(service="RC" if reliable else "UC", qps=[qp.qp_num for qp in qps], psn=PSN, rkey=where[0], address=where[1])
    return qps


def datagrams(first, second):
    qps = []
    for side in (first, second):
        attributes = QPAttr(port_num=1)
        attributes.qkey = QKEY
        qp = QP(side.pd, QPInitAttr(qp_type=e.IBV_QPT_UD, scq=side.cq, rcq=side.cq, cap=QPCap(16, 16, 1, 1)), attributes)
        qps.append(qp)
    handle = AH(first.pd, attr=first.path(second))
    first.region.write(b"d" * 100, 100)
    for opcode in (e.IBV_WR_SEND, e.IBV_WR_SEND_WITH_IMM):
        second.receive(qps[1])
        request = SendWR(wr_id=7, opcode=opcode, num_sge=1, sg=[SGE(first.region.buf, 99, first.region.lkey)], imm_data=5)
        request.set_wr_ud(handle, qps[1].qp_num, QKEY)
        qps[0].post_send(request)
        first.succeed(1)
        second.succeed(1)
    say(service="UD", qps=[qp.qp_num for qp in qps], qkey=QKEY)


def every_operation():
    first, second = Side("uib0"), Side("uib1")
    kept = [connected_operations(e.IBV_QPT_RC, first, second), connected_operations(e.IBV_QPT_UC, first, second)]
    datagrams(first, second)
    del kept


def sends(count, length=64):
    first, second = Side("uib0"), Side("uib1")
    qps = pair(e.IBV_QPT_RC, first, second)
    for number in range(count):
        data = random.Random(number).randbytes(length)
        first.region.write(data, length)
        second.receive(qps[1])
        post(first, qps[0], length, "send")
        first.succeed(1)
        second.succeed(1)
        expect(second.region.read(length, 0) == data, f"bytes of SEND {number}")
    say(sends=count, qps=[qp.qp_num for qp in qps], psn=PSN)


def write():
    first, second = Side("uib0"), Side("uib1")
    qps = pair(e.IBV_QPT_RC, first, second)
    second.region.write(b"s" * 64, 64)
    first.region.write(b"w" * 64, 64)
    post(first, qps[0], 64, "rdma_write", second.region.rkey, second.region.buf)
    status = first.poll(1)[0].status
    say(status=status, untouched=second.region.read(64, 0) == b"s" * 64)


def port():
    first, second = Side("uib0"), Side("uib1")
    qps = pair(e.IBV_QPT_RC, first, second, retries=2, timeout=12)
    say(state=first.context.query_port(1).state)

    def event(wanted):
        got = first.context.get_async_event()
        while got.event_type == e.IBV_EVENT_CLIENT_REREGISTER:  # the subnet manager greets a port that is new to it
            got.ack()
            got = first.context.get_async_event()
        say(event=got.event_type, state=first.context.query_port(1).state)
        got.ack()
        expect(got.event_type == wanted, f"event {wanted}, not {got.event_type}")

    event(e.IBV_EVENT_PORT_ERR)
    started = time.monotonic()
    second.receive(qps[1])
    post(first, qps[0], 64, "send")
    say(status=first.poll(1)[0].status, seconds=time.monotonic() - started)
    event(e.IBV_EVENT_PORT_ACTIVE)
    qps = pair(e.IBV_QPT_RC, first, second)
    second.receive(qps[1])
    post(first, qps[0], 64, "send")
    say(status=first.poll(1)[0].status)


if __name__ == "__main__":
    {"all": every_operation, "sends": sends, "write": write, "port": port}[sys.argv[1]](*map(int, sys.argv[2:]))
