#!/usr/bin/python3
"""`uib fault` on a running engine: what programs see of loss, duplicates, reordering, delay, damage and a link that goes down,
and that the counters tell."""

import json
import pathlib
import subprocess

import uibtest
from uibtest import Engine, expect, need_tools, say, unique_port, wait_until

PROGRAM = pathlib.Path(__file__).with_name("tap_program.py")
VERIFY = pathlib.Path(uibtest.BUILD) / "bin" / "uib_verify"
FIRST_PSN = 0xFFFFF0  # tap_program.py's
REMOTE_ACCESS_ERROR, RETRY_EXCEEDED = 10, 12  # ibv_wc_status
PORT_ACTIVE, PORT_ERROR = 9, 10  # ibv_event_type
# What uib_verify calls operations of RC alone: the other services do not make up for losses.
RELIABLE = ("SEND with invalidate", "WRITE to a window", "READ", "compare-and-swap")
DOWN, ACTIVE = 1, 4  # ibv_port_state


def fault(engine, *arguments, status=0):
    done = subprocess.run([str(part) for part in engine.uib("fault", *map(str, arguments))], env=engine.environment(),
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20)
    expect(done.returncode == status, f"uib fault {arguments}: status {done.returncode}, {done.stderr}")
    return done.stdout if status == 0 else done.stderr


def rules(engine):
    return json.loads(fault(engine, "list", "--json"))


def counters(engine, device="uib0"):
    return next(one["ports"][0]["counters"] for one in engine.status()["devices"] if one["name"] == device)


def program(engine, *arguments):
    """The facts that tap_program.py prints last."""
    result = engine.run(["/usr/bin/python3", "-B", PROGRAM, *map(str, arguments)], 60)
    expect(result.ok, f"tap_program.py {arguments}: {result.text}")
    return json.loads(result.text.splitlines()[-1])


def disturbed(engine, name, *rule, counter=None):
    """uib_verify and perftest get everything through; the rule did something, and the port says so."""
    fault(engine, "add", *rule)
    before = counters(engine)
    for operation in RELIABLE:
        result = engine.run([VERIFY, "--device", "uib0", "--peer-device", "uib1", "--rounds", "10", "--qps", "2", "--only", operation,
                             "--max-bytes", "65536", "--seed", "11"], 60)
        expect(result.ok, f"uib_verify --only '{operation}' with {name}:\n{result.text}")
    program(engine, "sends", 50, 5000)
    port = unique_port()
    common = ["ib_write_bw", "-F", "-s", "16384", "-n", "200", "-p", port]
    pair = engine.pair([*common, "-d", "uib0"], [*common, "-d", "uib1", "127.0.0.1"], port, 60)
    expect(pair.ok, f"ib_write_bw with {name}:\n{pair.text}")
    fired = rules(engine)[0]["fired"]
    after = counters(engine)
    both = {key: after[key] + counters(engine, "uib1")[key] for key in after}
    expect(fired > 0, f"{name}: the rule did nothing: {rules(engine)}")
    made = "fault_" + rule[0].replace("-", "_")
    expect(both[made] >= fired, f"{name}: {made} is {both[made]}, the rule fired {fired} times")
    if counter is not None:
        expect(both[counter] > before[counter], f"{name}: {counter} is {both[counter]}")
    fault(engine, "remove", "all")
    expect(counters(engine)[made] == after[made], "counters outlive the rule")
    say(f"passed: {name}: fired {fired} times, all bytes right")


def one_lost_send(engine):
    """The fifth SEND is lost: sent again once, and nothing else is."""
    before = counters(engine)
    fault(engine, "add", "drop", "--device", "uib0", "--opcode", "rc-send-only", "--psn", FIRST_PSN + 4, "--count", 1)
    program(engine, "sends", 10)
    rule = rules(engine)[0]
    expect((rule["matched"], rule["fired"]) == (2, 1), f"the SEND and its repetition: {rule}")
    after = counters(engine)
    moved = {key: after[key] - before[key] for key in after if after[key] != before[key]}
    expect(moved.get("fault_drop") == 1 and moved.get("port_xmit_packets") == 10 and
           moved.get("retransmitted_packets") == 1, f"10 SENDs left the port, one of them sent again: {moved}")
    fault(engine, "remove", rule["id"])
    expect("no rule" in fault(engine, "remove", rule["id"], status=1), "a rule is removed once")
    say(f"passed: one SEND lost by its PSN, sent again once: {moved}")


def wrong_key(engine):
    fault(engine, "add", "corrupt", "--field", "rkey", "--count", 1)
    facts = program(engine, "write")
    expect(facts["status"] == REMOTE_ACCESS_ERROR and facts["untouched"], f"a WRITE with a wrong R_Key: {facts}")
    fault(engine, "remove", "all")
    say("passed: a corrupted R_Key is a remote access error, and memory is untouched")


def link_down(engine):
    process = engine.spawn(["/usr/bin/python3", "-B", PROGRAM, "port"])

    def lines():
        return [json.loads(line) for line in process.output().splitlines() if line.startswith("{")]

    def wait_for(count):
        wait_until(lambda: len(lines()) >= count or not process.running(), 20, lambda: process.output())
        expect(len(lines()) >= count, process.output())
        return lines()[count - 1]

    try:
        expect(wait_for(1)["state"] == ACTIVE, "the port is active")
        rule = fault(engine, "add", "link-down", "--device", "uib0").strip()
        seen = wait_for(2)
        expect(seen == {"event": PORT_ERROR, "state": DOWN}, f"the port goes down: {seen}")
        failed = wait_for(3)
        # Local ACK timeout 12 is 16.8 ms; the first try and 2 repetitions, each up to four times that (9.7.6.1.3).
        expect(failed["status"] == RETRY_EXCEEDED and 0.04 < failed["seconds"] < 1, f"a SEND times out: {failed}")
        port = engine.status()["devices"][0]["ports"][0]
        expect(port["state"] == "DOWN" and port["counters"]["link_downed"] == 1, f"status: {port}")
        fault(engine, "remove", rule)
        seen = wait_for(4)
        expect(seen == {"event": PORT_ACTIVE, "state": ACTIVE}, f"the port comes back: {seen}")
        expect(wait_for(5)["status"] == 0, "a new connection works")
        expect(process.wait(10) == 0, process.output())
    finally:
        process.end()
    say(f"passed: link down: events, state, time-out after {failed['seconds']:.3f} s, back up")


def refused(engine):
    expect("no device 'nix'" in fault(engine, "add", "drop", "--device", "nix", status=1), "an unknown device")
    expect("no action" in fault(engine, "add", "loose", status=1), "an unknown action")
    if uibtest.os.geteuid() == 0:
        denied = uibtest.Process(engine.uib("fault", "list"), engine.directory, engine.environment(), user=65534)
        expect(denied.wait(10) == 1, "a stranger's command is refused")
        text = denied.output()
        denied.end()
        # The socket's directory may keep strangers out before the engine does.
        expect("only root" in text or "Permission denied" in text, text)
    say("passed: refusals")


def test():
    need_tools("ib_write_bw")
    with Engine() as engine:
        one_lost_send(engine)
        wrong_key(engine)
        disturbed(engine, "1 % loss", "drop", "--probability", "1%")
        disturbed(engine, "duplicates", "duplicate", "--probability", "2%")
        disturbed(engine, "reordering", "reorder", "--probability", "1%", "--amount", "3")
        disturbed(engine, "delay", "delay", "--probability", "5%", "--amount", "200us")
        disturbed(engine, "damaged bits", "corrupt-bit", "--probability", "1%", counter="port_rcv_errors")
        link_down(engine)
        refused(engine)
        expect(fault(engine, "list") == "no fault rules\n", "no rule is left")
        engine.expect_healthy()
        engine.stop()


if __name__ == "__main__":
    uibtest.main(test)
