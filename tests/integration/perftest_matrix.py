#!/usr/bin/python3
"""The whole matrix of unmodified perftest: every tool, service and option that the installed tools have, on one device and
from uib0 to uib1. Says how many of how many passed.

  --quick     what fits into a few minutes (default)
  --full      all of it, with the tools' own iteration counts
  --list      print the commands and run nothing
  --only X    only runs whose name contains X
  --user N    run engine and tools as this uid (needs root)
"""

import argparse
import re
import signal
import subprocess
import time

import uibtest
from uibtest import Engine, Failure, expect, say, unique_port

TOOLS = {
    "ib_send_bw": ("RC", "UC", "UD", "XRC"),
    "ib_send_lat": ("RC", "UC", "UD", "XRC"),
    "ib_write_bw": ("RC", "UC", "XRC"),
    "ib_write_lat": ("RC", "UC", "XRC"),
    "ib_read_bw": ("RC", "XRC"),
    "ib_read_lat": ("RC", "XRC"),
    "ib_atomic_bw": ("RC", "XRC"),
    "ib_atomic_lat": ("RC", "XRC"),
}
# Name, arguments, what the tool's help must show for it.
OPTIONS = (
    ("plain", [], None),
    ("all", ["-a"], "-a, --all"),
    ("bidirectional", ["-b"], "-b, --bidirectional"),
    ("events", ["-e"], "-e, --events"),
    ("16 QPs", ["-q", "16"], "-q, --qp"),
    ("inline", ["-I", "64", "-s", "64"], "-I, --inline_size"),
    ("8 MiB", ["-s", "8388608"], "-s, --size"),
    ("old post send", ["--use_old_post_send"], "--use_old_post_send"),
)
TOPOLOGIES = (("uib0", "uib0"), ("uib0", "uib1"))


class Run:
    def __init__(self, tool, service, option, arguments, devices, limit):
        self.tool, self.service, self.option = tool, service, option
        self.arguments, self.devices, self.limit = arguments, devices, limit
        self.name = f"{tool} {service} {option} {devices[0]}-{devices[1]}"

    def commands(self, port):
        common = [self.tool, "-p", str(port), "-F"]
        if self.service != "RC":
            common += ["-c", self.service]
        common += self.arguments
        return common + ["-d", self.devices[0]], common + ["-d", self.devices[1], "127.0.0.1"]


def help_of(tool):
    return subprocess.run([tool, "--help"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=20).stdout


def iterations(tool, option, full):
    """The tools' own counts in the full form, except where a tool makes gigabytes a turn; short runs else."""
    if option == "8 MiB":
        return ["-n", "100" if full else "20"]
    if option == "all":
        return ["-n", "1000" if full and tool.endswith("_lat") else "200" if full else "20"]
    if option == "16 QPs":
        return ["-n", "500" if full else "100"]
    return [] if full else ["-n", "300"]


def matrix(full):
    runs = []
    for tool, services in TOOLS.items():
        text = help_of(tool)
        for service in services:
            for option, arguments, shown_as in OPTIONS:
                if shown_as is not None and shown_as not in text:
                    continue
                if service == "UD" and option == "8 MiB":
                    continue  # a datagram is at most one MTU
                for devices in TOPOLOGIES:
                    runs.append(Run(tool, service, option, arguments + iterations(tool, option, full), devices,
                                    180 if full else 40))
    many = ["-q", "1026", "-n", "20" if full else "5", "-s", "65536" if full else "4096", "-t", "16"]
    for devices in TOPOLOGIES if full else TOPOLOGIES[1:]:
        runs.append(Run("ib_write_bw", "RC", "1026 QPs", many, devices, 180))
    return runs if full else thin(runs)


def thin(runs):
    """Of each tool, service and option one topology, in turns; plain runs keep both. All sizes go over the reliable service
    and over datagrams: the tools measure the CPU's clock anew for each line, which keeps both sides busy for a quarter of a
    second or more. Those of latency can do without (-C, cycles are printed), and do in all but the plain runs."""
    kept, turn = [], 0
    for run in runs:
        if run.option in ("plain", "1026 QPs"):
            kept.append(run)
            continue
        if run.option == "all" and run.service not in ("RC", "UD"):
            continue
        if run.tool.endswith("_lat"):
            run.arguments.append("-C")
        if run.devices == TOPOLOGIES[turn // 2 % 2]:
            kept.append(run)
        turn += 1
    return kept


def bad_output(text):
    """What a tool that ends with status 0 may still have printed about trouble."""
    found = re.search(r"(?im)^.*(Failed|Problems|Completion with error|Couldn't|not found|error ).*$", text)
    return found.group(0) if found else None


def run_one(engine, run):
    port = unique_port()
    server, client = run.commands(port)
    result = engine.pair(server, client, port, run.limit)
    trouble = bad_output(result.text) if result.ok else None
    if trouble:
        result.status, result.text = 1, f"printed: {trouble}\n{result.text}"
    return result


def run_infinitely(engine, rounds):
    """Endless runs ended by SIGINT and by SIGKILL; the engine stays healthy, and nothing of the clients' stays in it."""
    for number in range(rounds):
        for name in ("SIGINT", "SIGKILL"):
            port = unique_port()
            common = ["ib_send_bw", "-p", str(port), "-F", "--run_infinitely", "-D", "1"]
            server, client = engine.spawn_pair(common + ["-d", "uib0"], common + ["-d", "uib1", "127.0.0.1"], port)
            try:
                time.sleep(0.3 + 0.05 * (number % 10))
                for side in (client, server) if number % 2 else (server, client):
                    expect(side.running(), f"round {number}: {side.name} ended early:\n{side.output()}")
                    side.send(getattr(signal, name))
                for side in (client, server):
                    expect(side.wait(10) is not None, f"round {number}: {side.name} outlives {name}")
            finally:
                client.end()
                server.end()
            engine.expect_no_objects()
    engine.expect_healthy()
    say(f"ib_send_bw --run_infinitely ended by SIGINT and by SIGKILL {rounds} times each: engine healthy, no objects left")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--user", type=int)
    return parser.parse_args()


def test():
    arguments = parse()
    uibtest.need_tools(*TOOLS)
    runs = [run for run in matrix(arguments.full) if arguments.only in run.name]
    if arguments.list:
        for run in runs:
            say(f"{run.name}: {' '.join(run.commands(0)[1])}")
        say(f"{len(runs)} runs")
        return
    failures = []
    with Engine(user=arguments.user, log_level="warning") as engine:
        for run in runs:
            result = run_one(engine, run)
            say(f"{'ok    ' if result.ok else 'FAILED'} {result.seconds:6.2f} s  {run.name}")
            if not result.ok:
                failures.append(run.name)
                say(result.text)
                if not engine.process.running():
                    raise Failure(f"the engine died in {run.name}")
        say(f"perftest matrix: {len(runs) - len(failures)} of {len(runs)} passed")
        for name in failures:
            say(f"  failed: {name}")
        engine.expect_no_objects()
        if not arguments.only:
            run_infinitely(engine, 20 if arguments.full else 4)
        engine.stop()
    expect(not failures, f"{len(failures)} of {len(runs)} perftest runs failed")


if __name__ == "__main__":
    uibtest.main(test)
