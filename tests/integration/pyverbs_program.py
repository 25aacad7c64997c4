"""Run by pyverbs_test.py where the devices are to be seen: makes PD, MR, CQ, channel, SRQ, AH, window and QP objects by
Debian's pyverbs, sends data between two QPs of this process by every operation and compares the bytes."""

import random
import struct
import sys
import time

import pyverbs.enums as e
from pyverbs.addr import AH, AHAttr
from pyverbs.cq import CQ, CQEX, CompChannel, CqInitAttrEx
from pyverbs.device import Context, get_device_list
from pyverbs.mr import MR, MW
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.srq import SRQ, SrqInitAttr, SrqAttr
from pyverbs.wr import SGE, RecvWR, SendWR

ACCESS = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_ATOMIC
SIZE = 100_000


def expect(condition, text):
    if not condition:
        sys.exit(f"FAILED: {text}")


def poll(cq, count):
    """`count` successful completions within 10 s."""
    done, end = [], time.monotonic() + 10
    while len(done) < count:
        number, completions = cq.poll(count - len(done))
        done += completions[:number]
        expect(time.monotonic() < end, f"{count} completions, got {len(done)}")
    for completion in done:
        expect(completion.status == e.IBV_WC_SUCCESS, f"completion status {completion.status}")
    return done


class Side:
    def __init__(self, context):
        self.context = context
        self.pd = PD(context)
        self.channel = CompChannel(context)
        self.cq = CQ(context, 64, None, self.channel)
        self.region = MR(self.pd, SIZE, ACCESS)
        caps = QPCap(max_send_wr=16, max_recv_wr=16, max_send_sge=4, max_recv_sge=4, max_inline_data=64)
        self.qp = QP(self.pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=caps))

    def connect(self, peer):
        attributes = QPAttr(port_num=1, path_mtu=e.IBV_MTU_1024)
        attributes.qp_access_flags = ACCESS
        attributes.dest_qp_num = peer.qp.qp_num
        attributes.rq_psn, attributes.sq_psn = peer.psn, self.psn
        attributes.max_dest_rd_atomic = attributes.max_rd_atomic = 1
        attributes.min_rnr_timer, attributes.timeout = 12, 14
        attributes.retry_cnt = attributes.rnr_retry = 7
        attributes.ah_attr = AHAttr(dlid=peer.context.query_port(1).lid, port_num=1)
        self.qp.to_rts(attributes)
        state = self.qp.query(e.IBV_QP_STATE)[0].qp_state
        expect(state == e.IBV_QPS_RTS, f"state {state} after to_rts")

    psn = 0

    def fill(self, seed, length):
        data = random.Random(seed).randbytes(length)
        self.region.write(data, length)
        return data

    def post(self, opcode, length, peer, **more):
        request = SendWR(wr_id=7, opcode=opcode, num_sge=1, sg=[SGE(self.region.buf, length, self.region.lkey)],
                         imm_data=more.pop("imm_data", 0))
        if opcode in (e.IBV_WR_ATOMIC_CMP_AND_SWP, e.IBV_WR_ATOMIC_FETCH_AND_ADD):
            request.set_wr_atomic(peer.region.rkey, peer.region.buf, more["compare_add"], more.get("swap", 0))
        elif opcode not in (e.IBV_WR_SEND, e.IBV_WR_SEND_WITH_IMM):
            request.set_wr_rdma(peer.region.rkey, peer.region.buf)
        self.qp.post_send(request)

    def receive(self):
        self.qp.post_recv(RecvWR(wr_id=8, num_sge=1, sg=[SGE(self.region.buf, SIZE, self.region.lkey)]))


def move_bytes(first, second):
    for length in (1, 64, 192, 193, 5000, SIZE):
        data = first.fill(length, length)
        second.fill(-length, SIZE)
        second.receive()
        first.post(e.IBV_WR_SEND, length, second)
        poll(first.cq, 1)
        expect(poll(second.cq, 1)[0].byte_len == length, "byte_len of a SEND")
        expect(second.region.read(length, 0) == data, f"bytes of a SEND of {length}")

        data = first.fill(length + 1, length)
        first.post(e.IBV_WR_RDMA_WRITE, length, second)
        poll(first.cq, 1)
        expect(second.region.read(length, 0) == data, f"bytes of a WRITE of {length}")

        data = second.fill(length + 2, length)
        first.post(e.IBV_WR_RDMA_READ, length, second)
        poll(first.cq, 1)
        expect(first.region.read(length, 0) == data, f"bytes of a READ of {length}")


def move_atomics(first, second):
    second.region.write(struct.pack("<Q", 41), 8)
    first.post(e.IBV_WR_ATOMIC_FETCH_AND_ADD, 8, second, compare_add=1)
    poll(first.cq, 1)
    expect(struct.unpack("<Q", first.region.read(8, 0))[0] == 41, "old value of a fetch-and-add")
    first.post(e.IBV_WR_ATOMIC_CMP_AND_SWP, 8, second, compare_add=42, swap=99)
    poll(first.cq, 1)
    expect(struct.unpack("<Q", second.region.read(8, 0))[0] == 99, "value after a compare-and-swap")


def events(first, second):
    second.cq.req_notify()
    second.receive()
    first.post(e.IBV_WR_SEND, 10, second)
    second.channel.get_cq_event(second.cq)
    second.cq.ack_events(1)
    poll(second.cq, 1)
    poll(first.cq, 1)


def other_objects(context):
    pd = PD(context)
    srq = SRQ(pd, SrqInitAttr(SrqAttr(max_wr=32, max_sge=2)))
    expect(srq.query().max_wr >= 32, "SRQ's max_wr")
    window = MW(pd, e.IBV_MW_TYPE_2)
    handle = AH(pd, attr=AHAttr(dlid=context.query_port(1).lid, port_num=1))
    extended = CQEX(context, CqInitAttrEx(cqe=20, wc_flags=e.IBV_WC_EX_WITH_COMPLETION_TIMESTAMP))
    for thing in (extended, handle, window, srq, pd):
        thing.close()


def main():
    names = [device.name.decode() for device in get_device_list()]
    expect("uib0" in names and "uib1" in names, f"uib0 and uib1 are not among {names}")
    for peer in ("uib0", "uib1"):
        contexts = Context(name="uib0"), Context(name=peer)
        attributes = contexts[0].query_device()
        expect(attributes.max_qp >= 65536 and attributes.vendor_id not in (0, 0xFFFFFF), "device attributes")
        first, second = (Side(context) for context in contexts)
        first.connect(second)
        second.connect(first)
        move_bytes(first, second)
        move_atomics(first, second)
        events(first, second)
        other_objects(contexts[0])
        for side in (first, second):
            for thing in (side.qp, side.cq, side.channel, side.region, side.pd, side.context):
                thing.close()
        print(f"uib0 to {peer}: device, PD, MR, MW, CQ, SRQ, AH, QP made; SEND, WRITE, READ and atomics compared")
    print("pyverbs: ok")


main()
