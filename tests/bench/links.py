#!/usr/bin/python3
"""Figures of links that leave the engine: two engines over a veth pair against TCP, UDP and bare frames over the same kind of pair;
in the virtual machine of tests/integration/rxe_interop.py, against the kernel's Soft-RoCE.

  links.py [--quick] [--json FILE]       on this machine (root; run.py has the same as group "links")
  links.py --vm [--quick]                boots the machine and measures both there; emulated: only ratios count, and they
                                         flatter whoever stays out of the kernel
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))

import uibtest  # noqa: E402
from hosts import Network  # noqa: E402
from uibtest import Failure, expect, say, unique_port  # noqa: E402

PROGRAM = uibtest.BUILD / "tests" / "bench" / "bench_links"
MIB = 1024 * 1024
SERVER, CLIENT = 0, 1


os.environ["UIB_DPDK_MODULE"] = str(uibtest.BUILD / "lib" / "libuib-dpdk.so")


def within(host, *command):
    return ["ip", "netns", "exec", host.namespace, *map(str, command)]


def call(command, seconds=60):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds)
    expect(done.returncode == 0, f"{' '.join(map(str, command))}: {done.stdout} {done.stderr}")
    return done.stdout


@contextlib.contextmanager
def serving(command, seconds=0.5):
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(seconds)
        yield
    finally:
        process.kill()
        process.wait()


def named(text):
    return {line.split()[0]: float(line.split()[1]) for line in text.splitlines() if len(line.split()) == 3}


def last_figures(text):
    """The last line of numbers that perftest printed, as numbers."""
    lines = [line for line in text.splitlines() if re.match(r"^\s*\d+\s+\d+\s+[\d.]+", line)]
    expect(lines, f"no figures in:\n{text}")
    return [float(cell) for cell in lines[-1].split()]


def median_of(repetitions, measure):
    return statistics.median(measure() for _ in range(repetitions))


def tcp_rate(network):
    """GB/s of iperf3."""
    hosts = network.hosts
    with serving(within(hosts[SERVER], "iperf3", "-s", "-1")):
        report = json.loads(call(within(hosts[CLIENT], "iperf3", "-c", hosts[SERVER].ipv4, "-t", "2", "-J")))
    return report["end"]["sum_received"]["bits_per_second"] / 8e9


def udp_latency(network):
    hosts = network.hosts
    with serving(within(hosts[SERVER], PROGRAM, "udp-server", "7777")):
        return named(call(within(hosts[CLIENT], PROGRAM, "udp-client", hosts[SERVER].ipv4, "7777")))["udp_spinning"]


def path_mtu(mtu):
    """What a RoCE path has over an interface of this MTU (IP, UDP, BTH, extension headers, ICRC)."""
    return max(size for size in (256, 512, 1024, 2048, 4096) if size + 96 <= mtu)


def bare_frames(driver, mtu):
    """In one namespace: both ends of a pair. "frames_path": as long as those of a full path MTU."""
    with Network(1, mtu) as network:
        host = network.hosts[0]
        host.ip("link", "add", "va", "mtu", mtu, "type", "veth", "peer", "name", "vb", "mtu", mtu)
        host.ip("link", "set", "va", "up")
        host.ip("link", "set", "vb", "up")
        time.sleep(0.2)
        return named(call(within(host, PROGRAM, "frames", "va", "vb", driver, 14 + 20 + 8 + 12 + path_mtu(mtu) + 4)))


def perftest(network, tool, column, *options):
    def run():
        port = unique_port()
        command = [tool, "-F", "-d", "uib0", "-x", "1", "-p", str(port), *map(str, options)]
        result = network.pair(command, [*command, network.hosts[SERVER].ipv4], port, 60)
        expect(result.ok, result.text)
        return last_figures(result.text.split("--- client", 1)[1])[column]
    return run


def uib_figures(network, driver, repetitions):
    """Throughput in GB/s, messages in millions a second, half a round trip in us."""
    with network.engines(driver, log_level="warning"):
        rate = median_of(repetitions, perftest(network, "ib_write_bw", 3, "-s", 65536, "-n", 3000)) * MIB / 1e9
        messages = median_of(repetitions, perftest(network, "ib_write_bw", 4, "-s", 64, "-n", 20000))
        latency = median_of(repetitions, perftest(network, "ib_send_lat", 4, "-s", 2, "-n", 3000))
    return rate, messages, latency


def measure(bench):
    """Adds rows to run.py's bench, or to the one below."""
    if os.geteuid() != 0:
        say("links: not measured, network namespaces need root")
        return
    for driver, mtu in (("af_packet", 1500), ("af_packet", 9000), ("af_xdp", 1500)):
        with Network(2, mtu, direct=True) as network:
            tcp = median_of(bench.repetitions, lambda: tcp_rate(network))
            udp = median_of(bench.repetitions, lambda: udp_latency(network))
            try:
                rate, messages, latency = uib_figures(network, driver, bench.repetitions)
            except Failure as failure:
                say(f"links: {driver} with MTU {mtu}: {failure}")
                continue
        frames = bare_frames(driver, mtu)
        title = f"roce {driver} MTU {mtu}"
        bench.add(f"{title}: ib_write_bw -s 64k", rate, "GB/s", reference=tcp, reference_name="TCP, iperf3")
        bench.add(f"{title}: its packets", rate * 1e3 / path_mtu(mtu), "M/s", reference=frames["frames_path"],
                  reference_name="bare frames of their length", target=0.7)
        bench.add(f"{title}: against frames as long as the MTU", rate, "GB/s", reference=frames["frames_full"],
                  reference_name="bare frames")
        bench.add(f"{title}: ib_write_bw -s 64, messages", messages, "M/s", reference=frames["frames_64"],
                  reference_name="64-byte frames", target=0.7)
        bench.add(f"{title}: ib_send_lat, typical", latency, "us", reference=udp, reference_name="UDP spinning")
        bench.add(f"{title}: beyond UDP's", latency - udp, "us", target=3.0, at_most=True)
        bench.add(f"{title}: bare frame, half a round trip", frames["frame_exchange"], "us")


def rxe_figures(repetitions):
    """rxe0 and rxe1 of the machine, joined by a veth pair."""
    def run(tool, column, *options):
        port = unique_port()
        command = [tool, "-F", "-x", "1", "-p", str(port), *map(str, options)]
        with serving([*command, "-d", "rxe0"], 2):
            return last_figures(call([*command, "-d", "rxe1", "10.77.0.1"], 60))[column]
    return (median_of(repetitions, lambda: run("ib_write_bw", 3, "-s", 65536, "-n", 300)) * MIB / 1e9,
            median_of(repetitions, lambda: run("ib_write_bw", 4, "-s", 64, "-n", 2000)),
            median_of(repetitions, lambda: run("ib_send_lat", 4, "-s", 2, "-n", 500)))


def beside_rxe(repetitions):
    rxe = rxe_figures(repetitions)
    with Network(2, 4200, direct=True) as network:
        ours = uib_figures(network, "af_packet", repetitions)
    for name, unit, own, theirs in zip(("ib_write_bw -s 64k", "ib_write_bw -s 64, messages", "ib_send_lat, typical"),
                                       ("GB/s", "M/s", "us"), ours, rxe):
        say(f"{name}: uib {own:.4f} {unit}, rxe {theirs:.4f} {unit}, ratio {own / theirs:.2f}")


class Bench:
    """What run.py gives to measure(), for this script alone."""

    def __init__(self, repetitions):
        self.repetitions, self.rows = repetitions, []

    def add(self, figure, value, unit, reference=None, reference_name="", target=None, at_most=False):
        row = {"figure": figure, "value": value, "unit": unit, "reference": reference, "reference_name": reference_name,
               "target": target, "at_most": at_most}
        self.rows.append(row)
        against = f"   {reference:.3f} ({reference_name})   {value / reference:.3f}" if reference else ""
        aim = f"   {'<=' if at_most else '>='} {target}" if target is not None else ""
        say(f"{figure}   {value:.3f} {unit}{against}{aim}")


def boot(quick):
    import rxe_interop
    vm = rxe_interop.machine()
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="uib-links-") as directory:
        script = rxe_interop.copy_for_guest(pathlib.Path(directory)) / pathlib.Path(__file__).resolve().relative_to(uibtest.ROOT)
        command = f"UIB_BUILD={directory} /usr/bin/python3 -B {script} --beside-rxe {'--quick' if quick else ''}"
        done = subprocess.run([vm, "-t", "900", "run", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, cwd="/", timeout=960)
    say(done.stdout)
    expect(done.returncode == 0, f"status {done.returncode}")


def test():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one run a figure instead of five")
    parser.add_argument("--json")
    parser.add_argument("--vm", action="store_true")
    parser.add_argument("--beside-rxe", action="store_true", help="what runs in the machine")
    arguments = parser.parse_args()
    repetitions = 1 if arguments.quick else 5
    if arguments.vm:
        boot(arguments.quick)
    elif arguments.beside_rxe:
        beside_rxe(repetitions)
    else:
        uibtest.need_tools("iperf3", "ib_write_bw", "ip")
        bench = Bench(repetitions)
        measure(bench)
        if arguments.json:
            pathlib.Path(arguments.json).write_text(json.dumps(bench.rows, indent=1) + "\n")
    say(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    uibtest.main(test)
