#!/usr/bin/python3
"""Unmodified programs on two devices whose link layer is Ethernet: libibverbs' pingpongs and perftest over RoCE, perftest's
raw packet tools, and a flow rule by pyverbs.

  ethernet_test.py           all of it
  ethernet_test.py flow      what this script runs itself under `uib run`: raw packets by pyverbs
"""

import sys
import time

import uibtest
from uibtest import Engine, expect, need_tools, say, unique_port

CONFIG = """
[engine]
link_layer = "ethernet"
"""

PINGPONGS = (["ibv_rc_pingpong"], ["ibv_uc_pingpong"], ["ibv_ud_pingpong", "-s", "1024"], ["ibv_srq_pingpong"])
PERFTEST = (
    ["ib_send_bw"], ["ib_send_lat"], ["ib_write_bw"], ["ib_write_lat"], ["ib_read_bw"], ["ib_atomic_lat"],
    ["ib_send_bw", "-c", "UC"], ["ib_write_bw", "-c", "UC"],
    ["ib_send_lat", "-c", "UD"], ["ib_send_bw", "-c", "UD", "-g", "-s", "512"],
)
RAW = (["raw_ethernet_bw", "-s", "1024", "-n", "500"], ["raw_ethernet_bw", "-s", "1500", "-n", "500"],
       ["raw_ethernet_lat", "-s", "64", "-n", "500"],
       ["raw_ethernet_bw", "-s", "128", "-n", "500", "UDP"], ["raw_ethernet_bw", "-s", "128", "-n", "500", "--tcp", "UDP"],
       ["raw_ethernet_lat", "-s", "128", "-n", "500", "UDP"])


def check_ports(engine):
    """What programs see of the ports; returns their MAC addresses."""
    macs = []
    for device in engine.status()["devices"]:
        port = device["ports"][0]
        expect(port["link_layer"] == "Ethernet" and port["lid"] == 0, f"an Ethernet port without a LID: {port}")
        macs.append(port["mac"])
    shown = engine.run(["ibv_devinfo", "-v", "-d", "uib0"])
    expect(shown.ok and "RoCE v2" in shown.text and "Ethernet" in shown.text, f"ibv_devinfo: {shown.text}")
    return macs


def run_pairs(engine):
    for command in PINGPONGS:
        port = unique_port()
        common = [*command, "-g", "0", "-n", "200", "-p", port]
        result = engine.pair([*common, "-d", "uib0"], [*common, "-d", "uib1", "127.0.0.1"], port, 30)
        expect(result.ok, f"{result.what}:\n{result.text}")
        say(f"passed: {result.what}")
    for command in PERFTEST:
        port = unique_port()
        common = [*command, "-F", "-x", "0", "-n", "200", "-p", port]
        result = engine.pair([*common, "-d", "uib0"], [*common, "-d", "uib1", "127.0.0.1"], port, 40)
        expect(result.ok, f"{result.what}:\n{result.text}")
        say(f"passed: {result.what}")


def run_raw(engine, macs):
    """These tools do not talk to each other: the client sends when it starts, so the server's QP must be there."""
    for command in RAW:
        with_ports = command[-1] == "UDP"
        command = command[:-1] if with_ports else command

        def side(own, peer):
            return ["-d", f"uib{own}", "--local_mac", macs[own], "--remote_mac", macs[peer]] + \
                (["--local_ip", f"10.0.0.{own + 1}", "--remote_ip", f"10.0.0.{peer + 1}",
                  "--local_port", str(5000 + own), "--remote_port", str(5000 + peer)] if with_ports else [])

        server = engine.spawn([*command, "-F", "--server", *side(0, 1)], "server")
        try:
            uibtest.wait_until(lambda: engine.objects()["qp"] >= 1 or not server.running(), 15, "server has its QP")
            time.sleep(0.5)  # its flow rule and receives come behind the QP, and nothing tells of them
            client = engine.run([*command, "-F", "--client", *side(1, 0)], 30)
            expect(client.ok, f"{client.what}:\n{client.text}\nserver:\n{server.output()}")
            expect(server.wait(20) == 0, f"{' '.join(server.command)}:\n{server.output()}")
        finally:
            server.end()
        say(f"passed: {' '.join(command)}{' by IP addresses and ports' if with_ports else ''}")


def flow_program():
    """Two raw packet QPs of one device; the rules decide who gets which frame."""
    import errno

    import pyverbs.enums as e
    from pyverbs.cq import CQ
    from pyverbs.device import Context
    from pyverbs.flow import Flow, FlowAttr
    from pyverbs.mr import MR
    from pyverbs.pd import PD
    from pyverbs.pyverbs_error import PyverbsRDMAError
    from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
    from pyverbs.spec import EthSpec
    from pyverbs.wr import SGE, RecvWR, SendWR

    context = Context(name="uib0")
    pd = PD(context)
    cqs = [CQ(context, 16), CQ(context, 16)]
    memory = MR(pd, 4096, e.IBV_ACCESS_LOCAL_WRITE)
    sender, receiver = (
        QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RAW_PACKET, scq=cq, rcq=cq, cap=QPCap(8, 8, 1, 1)), QPAttr(port_num=1))
        for cq in cqs)

    def poll(cq):
        end = time.monotonic() + 5
        while time.monotonic() < end:
            count, completions = cq.poll()
            if count:
                return completions[0]
        return None

    def send(destination):
        frame = bytes.fromhex(destination.replace(":", "")) + b"\x02" + bytes(5) + b"\x88\xb5" + b"x" * 50
        memory.write(frame, len(frame))
        sender.post_send(SendWR(num_sge=1, sg=[SGE(memory.buf, len(frame), memory.lkey)]))
        done = poll(cqs[0])
        expect(done is not None and done.status == e.IBV_WC_SUCCESS, "a frame is sent")
        return frame

    wanted, unwanted = "24:8a:07:a5:28:c8", "24:8a:07:a5:28:c9"
    attributes = FlowAttr(num_of_specs=1, port=1)
    attributes.specs.append(EthSpec(dst_mac=wanted))
    rule = Flow(receiver, attributes)
    receiver.post_recv(RecvWR(wr_id=1, num_sge=1, sg=[SGE(memory.buf + 2048, 1024, memory.lkey)]))
    send(unwanted)
    frame = send(wanted)
    got = poll(cqs[1])
    expect(got is not None and got.status == e.IBV_WC_SUCCESS and got.byte_len == len(frame),
           f"the wanted frame, and that alone: {got}")
    expect(memory.read(len(frame), 2048) == frame, "the frame as it was sent")
    expect(context.query_device().device_cap_flags & e.IBV_DEVICE_MANAGED_FLOW_STEERING, "flow rules are announced")
    twice, inner = FlowAttr(num_of_specs=2, port=1), FlowAttr(num_of_specs=1, port=1)
    twice.specs.extend([EthSpec(dst_mac=wanted), EthSpec(dst_mac=unwanted)])
    inner.specs.append(EthSpec(dst_mac=wanted, is_inner=1))
    for refused, why in ((FlowAttr(num_of_specs=0, port=2), errno.EINVAL), (twice, errno.EINVAL),
                         (inner, errno.EOPNOTSUPP),
                         (FlowAttr(num_of_specs=0, port=1, flags=e.IBV_FLOW_ATTR_FLAGS_EGRESS), errno.EOPNOTSUPP)):
        try:
            Flow(receiver, refused)
        except PyverbsRDMAError as error:
            expect(error.error_code == why, f"{error} instead of errno {why}")
        else:
            raise uibtest.Failure("a rule that cannot be was made")
    rule.close()
    say("raw packets went by the rules")


def test():
    if "flow" in sys.argv[1:]:
        flow_program()
        return
    need_tools("ibv_rc_pingpong", "ib_send_bw", "raw_ethernet_bw", "raw_ethernet_lat")
    with Engine(CONFIG) as engine:
        macs = check_ports(engine)
        run_pairs(engine)
        run_raw(engine, macs)
        result = engine.run(["/usr/bin/python3", "-B", __file__, "flow"], 30)
        expect(result.ok, f"the flow rules by pyverbs:\n{result.text}")
        say(result.text.strip())
        engine.expect_no_objects()
        engine.stop()
    as_nobody()


def as_nobody():
    """An ordinary user's processes get no raw packets, from an engine of any user."""
    import os
    if os.geteuid() != 0:
        return
    with Engine(CONFIG, user=65534) as engine:
        result = engine.run(["raw_ethernet_lat", "-F", "-d", "uib0", "--server", "-B", "02:00:00:00:00:01", "-E",
                             "02:00:00:00:00:02"], 20)
        expect(result.status not in (0, None), f"raw packets for an ordinary user:\n{result.text}")
        expect("Operation not permitted" in result.text + engine.process.output(),
               f"the reason is the missing right:\n{result.text}")
    say("passed: no raw packets for an ordinary user")


uibtest.main(test)
