"""Run by pyverbs_test.py where the devices are to be seen: one process opens a device and registers memory; another, which
inherits the device's descriptor, imports device, PD and MR and writes into the first one's memory by its own queue pair."""

import os
import subprocess
import sys
import time

import pyverbs.enums as e
from pyverbs.addr import AHAttr
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, SendWR

ACCESS = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE
SIZE = 50_000
DATA = bytes(i * 7 % 251 for i in range(SIZE))


def expect(condition, text):
    if not condition:
        sys.exit(f"FAILED: {text}")


def loopback_qp(context, pd, cq):
    qp = QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=QPCap(max_send_wr=4, max_recv_wr=4)))
    attributes = QPAttr(port_num=1, path_mtu=e.IBV_MTU_1024)
    attributes.qp_access_flags = ACCESS
    attributes.dest_qp_num = qp.qp_num
    attributes.min_rnr_timer, attributes.timeout = 12, 14
    attributes.retry_cnt = attributes.rnr_retry = 7
    attributes.ah_attr = AHAttr(dlid=context.query_port(1).lid, port_num=1)
    qp.to_rts(attributes)
    return qp


def write(qp, cq, region, rkey, address, length):
    request = SendWR(wr_id=1, opcode=e.IBV_WR_RDMA_WRITE, num_sge=1, sg=[SGE(region.buf, length, region.lkey)])
    request.set_wr_rdma(rkey, address)
    qp.post_send(request)
    end = time.monotonic() + 10
    while True:
        number, completions = cq.poll(1)
        if number:
            expect(completions[0].status == e.IBV_WC_SUCCESS, f"completion status {completions[0].status}")
            return
        expect(time.monotonic() < end, "no completion within 10 s")


def importer(cmd_fd, pd_handle, mr_handle, rkey, address):
    context = Context(cmd_fd=cmd_fd)
    pd = PD(context, handle=pd_handle)
    imported = MR(pd, handle=mr_handle)
    expect(imported.rkey == rkey, f"imported R_Key {imported.rkey:#x}, not {rkey:#x}")
    cq = CQ(context, 16)
    own = MR(pd, SIZE, ACCESS)
    own.write(DATA, SIZE)
    qp = loopback_qp(context, pd, cq)
    write(qp, cq, own, imported.rkey, address, SIZE)
    # The imported region as local memory, which the engine alone can reach from here: its end onto its start.
    request = SendWR(wr_id=2, opcode=e.IBV_WR_RDMA_WRITE, num_sge=1, sg=[SGE(address + SIZE - 64, 64, imported.lkey)])
    request.set_wr_rdma(own.rkey, own.buf)
    qp.post_send(request)
    end = time.monotonic() + 10
    while cq.poll(1)[0] == 0:
        expect(time.monotonic() < end, "no completion within 10 s")
    expect(own.read(64, 0) == DATA[-64:], "the imported region's bytes do not arrive")
    imported.unimport()
    pd.unimport()


def owner():
    context = Context(name="uib0")
    pd = PD(context)
    region = MR(pd, SIZE, ACCESS)
    region.write(bytes(SIZE), SIZE)
    os.set_inheritable(context.cmd_fd, True)
    arguments = [context.cmd_fd, pd.handle, region.handle, region.rkey, region.buf]
    subprocess.run([sys.executable, __file__, *map(str, arguments)], check=True, timeout=40, close_fds=False)
    expect(region.read(SIZE, 0) == DATA, "the importing process's bytes are not there")
    # The importer is gone; the owner's objects work on.
    cq = CQ(context, 16)
    qp = loopback_qp(context, pd, cq)
    write(qp, cq, region, region.rkey, region.buf + 25_000, 1000)
    expect(region.read(1000, 25_000) == DATA[:1000], "the owner's own write does not arrive")
    for thing in (qp, cq, region, pd, context):
        thing.close()
    print("device, PD and MR imported by another process; bytes compared both ways")


if len(sys.argv) > 1:
    importer(*map(int, sys.argv[1:]))
else:
    owner()
