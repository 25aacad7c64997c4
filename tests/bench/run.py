#!/usr/bin/python3
"""All of the issue's figures in one run, with the references they are set against measured in the same run.

  run.py [--quick] [--json FILE] [--only TEXT]

Perftest runs as client and server with default settings over a private engine of the build tree (UIB_BUILD, default
build/release); each figure is the median of several runs. Prints a table: figure, value, reference, ratio, target, reached.
The memcpy reference is given twice, on buffers that stay in the cache ("hot") and on buffers that are walked through ("walk"):
a row of its own for each.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))

import links  # noqa: E402
import uibtest  # noqa: E402
from uibtest import Engine, Failure, say, unique_port  # noqa: E402

PROGRAMS = uibtest.BUILD / "tests" / "bench"
KIB = 1024
MIB = 1024 * 1024


class Row:
    def __init__(self, figure, value, unit, reference=None, reference_name="", target=None, at_most=False):
        self.figure, self.value, self.unit = figure, value, unit
        self.reference, self.reference_name = reference, reference_name
        self.target, self.at_most = target, at_most

    @property
    def ratio(self):
        return self.value / self.reference if self.reference else None

    @property
    def reached(self):
        if self.target is None:
            return None
        measured = self.ratio if self.reference else self.value
        return measured <= self.target if self.at_most else measured >= self.target

    def cells(self):
        reference = f"{self.reference:.2f} ({self.reference_name})" if self.reference else ""
        ratio = f"{self.ratio:.3f}" if self.reference else ""
        target = "" if self.target is None else f"{'<=' if self.at_most else '>='} {self.target:g}"
        reached = {None: "", True: "yes", False: "NO"}[self.reached]
        return [self.figure, f"{self.value:.3f} {self.unit}", reference, ratio, target, reached]

    def record(self):
        return {"figure": self.figure, "value": self.value, "unit": self.unit, "reference": self.reference,
                "reference_name": self.reference_name, "ratio": self.ratio, "target": self.target,
                "at_most": self.at_most, "reached": self.reached}


def values_of(text):
    """{name: value} of lines "name value unit"."""
    found = {}
    for line in text.splitlines():
        parts = line.split()
        if len(parts) == 3 and re.fullmatch(r"[-0-9.e+]+", parts[1]):
            found[parts[0]] = float(parts[1])
    return found


def figures_of(program):
    """What a program prints that needs no engine."""
    done = subprocess.run([PROGRAMS / program], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise Failure(f"{program}: {done.stderr}")
    return values_of(done.stdout)


class Bench:
    def __init__(self, quick):
        self.repetitions = 3 if quick else 7
        self.rows = []

    def add(self, *arguments, **more):
        row = Row(*arguments, **more)
        self.rows.append(row)
        say("   ".join(cell for cell in row.cells() if cell))

    def perftest(self, engine, tool, *options):
        """The last line of figures of the client, as numbers; the median of each column over the runs."""
        columns = []
        for _ in range(self.repetitions):
            port = unique_port()
            common = [tool, "-p", str(port), "-F", *map(str, options)]
            result = engine.pair(common + ["-d", "uib0"], common + ["-d", "uib1", "127.0.0.1"], port, 120)
            if not result.ok:
                raise Failure(f"{result.what}\n{result.text}")
            client = result.text.split("--- client", 1)[1]
            lines = [line for line in client.splitlines() if re.match(r"^\s*\d+\s+\d+\s+[\d.]+", line)]
            columns.append([float(cell) for cell in lines[-1].split()])
        return [statistics.median(column) for column in zip(*columns)]

    def program(self, engine, *arguments):
        result = engine.run([PROGRAMS / "bench_verbs", *arguments], 300)
        if not result.ok:
            raise Failure(f"bench_verbs {' '.join(arguments)}: {result.text}")
        return values_of(result.text)

    def checksums(self, _engine, _base):
        """Aimed at where the CPU multiplies 512 bits; elsewhere the figures stand without a target."""
        found = figures_of("bench_crc")
        target = 0.5 if "crc32_wide_4096" in found else None
        for name in ("icrc", "vcrc"):
            self.add(f"{name.upper()} of 4 KiB", found[f"{name}_4096"], "GB/s", found["memcpy_4096"], "memcpy", target=target)

    def links(self, _engine, _base):
        """Engines of their own, in network namespaces."""
        links.measure(self)

    def latency(self, engine, base):
        typical = self.perftest(engine, "ib_send_lat", "-s", 2, "-n", 20000)[4]
        self.add("ib_send_lat -s 2, typical", typical, "us", reference=base["shared_memory_three_party"],
                 reference_name="three-party ping-pong", target=2.0, at_most=True)
        self.add("  against blocking TCP", typical, "us", reference=base["tcp_blocking"], reference_name="TCP blocking",
                 target=1 / 3, at_most=True)
        self.add("  against spinning TCP", typical, "us", reference=base["tcp_spinning"], reference_name="TCP spinning",
                 target=1.0, at_most=True)
        for tool in ("ib_write_lat", "ib_read_lat"):
            self.add(f"{tool} -s 2, typical", self.perftest(engine, tool, "-s", 2, "-n", 20000)[4], "us")

    def bandwidth(self, engine, base):
        for tool in ("ib_write_bw", "ib_read_bw", "ib_send_bw"):
            for size, text, count in ((64 * KIB, "64k", 20000), (MIB, "1024k", 3000)):
                # perftest's MB are MiB.
                rate = self.perftest(engine, tool, "-s", size, "-n", count)[3] * MIB / 1e9
                for kind in ("walk", "hot"):
                    self.add(f"{tool} -s {text}", rate, "GB/s", reference=base[f"memcpy_private_{text}_{kind}"],
                             reference_name=f"memcpy {kind}", target=0.4)

    def shared_bandwidth(self, engine, base):
        for operation in ("write", "read", "send"):
            for size, text in ((64 * KIB, "64k"), (MIB, "1024k")):
                rate = self.program(engine, "bandwidth", operation, str(size), "shared")[f"shared_{operation}_{text}"]
                for kind in ("walk", "hot"):
                    self.add(f"shared memory, {operation} {text}", rate, "GB/s",
                             reference=base[f"memcpy_to_shared_{text}_{kind}"], reference_name=f"memcpy {kind}", target=0.7)

    def message_rate(self, engine, _):
        for tool in ("ib_write_bw", "ib_send_bw"):
            rate = self.perftest(engine, tool, "-s", 64, "-n", 500000)[4]
            self.add(f"{tool} -s 64", rate, "M messages/s", target=1.0)

    def idle_queues(self, engine, _):
        found = self.program(engine, "idle", "4096")
        self.add("16 busy QPs beside 4096 idle ones", found["busy_beside_idle"] / 1e6, "M messages/s",
                 reference=found["busy_alone"] / 1e6, reference_name="alone", target=0.95)

    def creation(self, engine, _):
        self.add("QPs created and brought to RTS", self.program(engine, "create", "2000")["qp_create_to_rts"], "1/s",
                 target=5000)

    def idle_engine(self, engine, _):
        self.add("idle engine's CPU", self.cpu_share(engine, 10) * 100, "%", target=1.0, at_most=True)
        with Held(engine, 4096) as held:
            self.add("engine's CPU with 4096 idle QPs", self.cpu_share(engine, 10) * 100, "%", target=1.0, at_most=True)
            # Resident memory, private and shared, as it grew: includes the smallest rings, so it is an upper bound.
            self.add("engine memory a QP, smallest rings included", held.kib_per_queue_pair, "KiB", target=16.0,
                     at_most=True)

    @staticmethod
    def cpu_share(engine, seconds):
        """Share of one core over that time, user and system."""
        def ticks():
            with open(f"/proc/{engine.pid}/stat") as stat:
                fields = stat.read().rsplit(")", 1)[1].split()
            return int(fields[11]) + int(fields[12])

        time.sleep(1)
        before, started = ticks(), time.monotonic()
        time.sleep(seconds)
        return (ticks() - before) / os.sysconf("SC_CLK_TCK") / (time.monotonic() - started)


class Held:
    """`count` idle QPs in a client that sleeps."""

    def __init__(self, engine, count):
        self.engine, self.count = engine, count

    def __enter__(self):
        before = uibtest.resident_kib(self.engine.pid)
        command = [str(part) for part in self.engine.uib("run", "--", PROGRAMS / "bench_verbs", "hold", str(self.count))]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=self.engine.environment())
        if self.process.stdout.readline().strip() != "ready":
            raise Failure("bench_verbs hold did not get its QPs")
        time.sleep(0.2)
        self.kib_per_queue_pair = (uibtest.resident_kib(self.engine.pid) - before) / self.count
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()


def print_table(rows):
    cells = [["figure", "value", "reference", "ratio", "target", "reached"]] + [row.cells() for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    say("")
    for number, line in enumerate(cells):
        say("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())
        if number == 0:
            say("  ".join("-" * width for width in widths))


def test():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three runs a figure instead of seven")
    parser.add_argument("--json", help="also write the rows to this file")
    parser.add_argument("--only", default="", help="only groups whose name contains this")
    arguments = parser.parse_args()
    bench = Bench(arguments.quick)
    failed = []
    base = figures_of("bench_reference")
    for name, value in base.items():
        say(f"reference {name}: {value:.3f}")
    os.environ["UIB_BENCH_DEVICE"], os.environ["UIB_BENCH_PEER"] = "uib0", "uib1"
    with Engine(log_level="warning") as engine:
        groups = (bench.checksums, bench.latency, bench.bandwidth, bench.shared_bandwidth, bench.message_rate, bench.idle_queues,
                  bench.creation, bench.idle_engine, bench.links)
        for group in groups:
            if arguments.only not in group.__name__:
                continue
            try:
                group(engine, base)
            except (Failure, KeyError) as failure:
                failed.append(group.__name__)
                say(f"FAILED {group.__name__}: {failure}")
    print_table(bench.rows)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps({
            "references": base, "rows": [row.record() for row in bench.rows], "failed": failed}, indent=1) + "\n")
    missed = [row.figure for row in bench.rows if row.reached is False]
    say(f"\n{sum(1 for row in bench.rows if row.reached)} targets reached, {len(missed)} not, {len(failed)} groups failed")
    if failed:
        raise Failure(f"could not be measured: {', '.join(failed)}")


if __name__ == "__main__":
    uibtest.main(test)
