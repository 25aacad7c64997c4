"""Run by pyverbs_test.py where the devices are to be seen: a process forks, and its children use the device that it opened
(provider/fork.h says how far). Every scenario ends with a look at the parent: its data must still flow."""

import os
import signal
import time
import traceback

import pyverbs.enums as e
from pyverbs.addr import AHAttr
from pyverbs.cq import CQ
from pyverbs.device import DM, AllocDmAttr, Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsError
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, SendWR

ACCESS = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ
SIZE = 50_000
HALF = SIZE // 2


def expect(condition, text):
    if not condition:
        raise AssertionError(text)


def pattern(seed, length):
    return bytes((i * 7 + seed) % 251 for i in range(length))


class Endpoint:
    """A QP connected to itself, with its own CQ and memory."""

    def __init__(self, context, pd):
        self.context, self.pd = context, pd
        self.region = MR(pd, SIZE, ACCESS)
        self.cq = CQ(context, 16)
        wish = QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=QPCap(max_send_wr=4, max_recv_wr=4))
        self.qp = QP(pd, wish)
        attributes = QPAttr(port_num=1, path_mtu=e.IBV_MTU_1024)
        attributes.qp_access_flags = ACCESS
        attributes.dest_qp_num = self.qp.qp_num
        attributes.min_rnr_timer, attributes.timeout = 12, 14
        attributes.retry_cnt = attributes.rnr_retry = 7
        attributes.ah_attr = AHAttr(dlid=context.query_port(1).lid, port_num=1)
        self.qp.to_rts(attributes)

    def post_write(self, rkey, address, length, source=None):
        """From the start of `source` (its own region) to `address`."""
        source = source or self.region
        request = SendWR(wr_id=1, opcode=e.IBV_WR_RDMA_WRITE, num_sge=1, sg=[SGE(source.buf, length, source.lkey)])
        request.set_wr_rdma(rkey, address)
        self.qp.post_send(request)

    def write(self, rkey, address, length, source=None):
        self.post_write(rkey, address, length, source)
        end = time.monotonic() + 10
        while True:
            number, completions = self.cq.poll(1)
            if number:
                expect(completions[0].status == e.IBV_WC_SUCCESS, f"completion status {completions[0].status}")
                return
            expect(time.monotonic() < end, "no completion within 10 s")

    def expect_data_flows(self, seed):
        for length in (16, HALF):
            self.region.write(pattern(seed, length), length)
            self.write(self.region.rkey, self.region.buf + HALF, length)
            expect(self.region.read(length, HALF) == pattern(seed, length), "bytes differ")

    def close(self):
        for thing in (self.qp, self.cq, self.region):
            thing.close()


def refused(action):
    try:
        action()
    except PyverbsError:
        return True
    return False


class Pipe:
    """One word from one process to another."""

    def __init__(self):
        self.read_end, self.write_end = os.pipe()

    def tell(self, word=b"x"):
        os.write(self.write_end, word)

    def hear(self):
        return os.read(self.read_end, 1)


def forked(work, *arguments):
    pid = os.fork()
    if pid == 0:
        signal.alarm(30)
        try:
            work(*arguments)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return pid


def expect_status(pid, what, wanted=0):
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    expect(status == wanted, f"{what}: status {status}, not {wanted}")


def own_objects(parent):
    """Everything made anew, a region on the parent's PD, the parent's region from outside."""
    dm = DM(parent.context, AllocDmAttr(length=4096))
    expect(refused(lambda: parent.cq.poll(1)), "the parent's CQ can be polled")
    expect(refused(lambda: parent.post_write(parent.region.rkey, parent.region.buf, 8)), "the parent's QP takes requests")
    own = Endpoint(parent.context, PD(parent.context))
    own.expect_data_flows(3)
    joint = Endpoint(parent.context, parent.pd)
    joint.expect_data_flows(4)
    joint.region.write(pattern(5, HALF), HALF)
    joint.write(parent.region.rkey, parent.region.buf, HALF)
    dm.close()


def inherited_region(parent, changed):
    """A local key of the parent names the parent's memory, as it is now, not the copy that the fork made."""
    changed.hear()
    joint = Endpoint(parent.context, parent.pd)
    for length in (16, HALF):
        joint.write(joint.region.rkey, joint.region.buf, length, source=parent.region)
        expect(joint.region.read(length, 0) == pattern(9, length), "bytes of an inherited region differ")


def descendants(parent):
    Endpoint(parent.context, parent.pd).expect_data_flows(1)
    child = forked(own_objects, parent)
    expect_status(child, "the child's child")
    Endpoint(parent.context, parent.pd).expect_data_flows(2)


def killed_at_work(parent, ready):
    own = Endpoint(parent.context, parent.pd)
    own.expect_data_flows(1)
    ready.tell()
    while True:
        own.expect_data_flows(2)


def survivor(context, joined, orphaned, outcome):
    pd = PD(context)
    own = Endpoint(context, pd)
    joined.tell()
    orphaned.hear()
    own.expect_data_flows(6)
    Endpoint(context, PD(context)).expect_data_flows(7)
    outcome.tell(b"y")


def dies_before_its_child(joined, orphaned, outcome):
    context = Context(name="uib0")
    forked(survivor, context, joined, orphaned, outcome)
    joined.hear()


def outlived_parent():
    joined, orphaned, outcome = Pipe(), Pipe(), Pipe()
    expect_status(forked(dies_before_its_child, joined, orphaned, outcome), "the parent that is outlived")
    orphaned.tell()
    os.close(outcome.write_end)
    expect(outcome.hear() == b"y", "a child does not outlive its parent")


def main():
    context = Context(name="uib0")
    parent = Endpoint(context, PD(context))
    parent.expect_data_flows(0)

    expect_status(forked(own_objects, parent), "a child's own objects")
    expect(parent.region.read(HALF, 0) == pattern(5, HALF), "what the child wrote is not here")
    parent.expect_data_flows(1)

    changed = Pipe()
    child = forked(inherited_region, parent, changed)
    parent.region.write(pattern(9, HALF), HALF)
    changed.tell()
    expect_status(child, "a child with an inherited region")

    expect_status(forked(descendants, parent), "a child with a child")
    parent.expect_data_flows(2)

    # A device without objects: pyverbs would destroy them first, which would be the parent's loss as with a kernel's adapter.
    with Context(name="uib1") as spare:
        expect_status(forked(spare.close), "a child that closes the device")
        Endpoint(spare, PD(spare)).expect_data_flows(3)

    expect_status(forked(lambda: os.execv("/bin/true", ["true"])), "a child that calls exec")
    parent.expect_data_flows(4)

    ready = Pipe()
    child = forked(killed_at_work, parent, ready)
    ready.hear()
    parent.expect_data_flows(5)
    os.kill(child, signal.SIGKILL)
    expect_status(child, "a child that is killed", -signal.SIGKILL)
    parent.expect_data_flows(6)

    children = [forked(own_objects, parent) for _ in range(8)]
    for child in children:
        expect_status(child, "one child of eight")
    parent.expect_data_flows(7)

    outlived_parent()
    parent.expect_data_flows(8)

    parent.close()
    parent.pd.close()
    context.close()
    print("children of every kind used their parent's device; the parent's data flowed after each")


main()
