#!/usr/bin/python3
"""uib over RoCE v2 against the kernel's Soft-RoCE (rdma_rxe), in a throw-away virtual machine: pingpongs and perftest, uib as
server and as client, with and without loss.

  rxe_interop.py            boots the machine, runs this script in it, shows what it printed: the whole matrix
  rxe_interop.py --few      what CI runs: the pingpongs, a bandwidth of each operation, one with loss
  rxe_interop.py --only X   only runs whose name contains X
  rxe_interop.py --repeat N each of them N times
  rxe_interop.py --guest DIRECTORY ...   what runs in the machine, over the build in DIRECTORY

The machine is ../shared/tools/peer-vm/peer-vm beside the checkout, or what UIB_PEER_VM names; without it the test is skipped.
No run is tried twice. Of one that fails the output of both sides is shown, and each counter that it moved: the engine's, rxe's,
those of the two ends of the veth pair and of the kernel's receive queues.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

import uibtest
from uibtest import expect, say, skip

HERE = pathlib.Path(__file__).resolve()
# Seconds for the machine, which shares a busy host's CPUs: the whole matrix has taken 130 to 400, what CI runs 60 to 150.
LIMIT, LIMIT_FEW = 1200, 210
PER_RUN, PER_LONG_RUN = 40, 150
# rxe's device rxe2 is on x0, in the first namespace; x1, its other end, is in the namespace "peer".
RXE_ADDRESS, OUR_ADDRESS = "10.78.0.1", "10.78.0.2"
CONFIG = '[[device]]\nname = "uib0"\nport = { link = "roce", driver = "af_packet", interface = "x1" }\n'
GID = "1"
LOSS = 0.01

PINGPONGS = (["ibv_rc_pingpong", "-c"], ["ibv_rc_pingpong", "-c", "-e"], ["ibv_rc_pingpong", "-c", "-m", "4096", "-s", "65536"],
             ["ibv_uc_pingpong", "-c"], ["ibv_ud_pingpong", "-c", "-s", "1000"], ["ibv_srq_pingpong", "-c"])
# Perftest has as many READs outstanding as its own adapter can (rxe's RXE_MAX_QP_RD_ATOM: 128), without asking the other side for
# its limit (ours: 32), which refuses what is more as the specification has it (C9-86; rxe itself has no such check and overwrites
# its oldest): between adapters whose limits differ it must be told one.
READS = ["-o", "16"]
BANDWIDTHS = (["ib_send_bw"], ["ib_write_bw"], ["ib_read_bw", *READS], ["ib_atomic_bw", *READS])
PERFTEST = (["ib_send_lat"], ["ib_write_lat"], ["ib_read_lat", *READS], ["ib_atomic_lat", *READS], *BANDWIDTHS,
            ["ib_atomic_bw", "-A", "CMP_AND_SWAP", *READS], ["ib_send_bw", "-a"],
            ["ib_send_lat", "-c", "UC"], ["ib_send_bw", "-c", "UC"], ["ib_write_lat", "-c", "UC"], ["ib_write_bw", "-c", "UC"],
            ["ib_send_lat", "-c", "UD"], ["ib_send_bw", "-c", "UD", "-s", "1024"])
# All sizes up to 8 MiB, rxe's largest message: 80 MB at the least count that perftest takes.
ALL_SIZES = ["-n", "5"]
# An emulated CPU stands still for 0.1 s and more at times ("hrtimer: interrupt took ..."), longer than the time-out of 67 ms that
# perftest asks for; the peer's silence is no loss then. 1.1 s where nothing is lost on purpose.
PATIENCE = ["-u", "18"]
# UC and UD lose what is lost.
WITH_LOSS = (PINGPONGS[0], *BANDWIDTHS)


def runs(few):
    """(name, command without its device, loss)."""
    for command in PINGPONGS:
        yield " ".join(command), [*command, "-g", GID, "-n", "100"], False
    for command in BANDWIDTHS if few else PERFTEST:
        count = ALL_SIZES if "-a" in command else ["-n", "100"]
        yield " ".join(command), [*command, "-F", "-x", GID, *count, *PATIENCE], False
    for command in WITH_LOSS[1:2] if few else WITH_LOSS:
        common = ["-g", GID, "-n", "200"] if "pingpong" in command[0] else ["-F", "-x", GID, "-n", "100"]
        yield f"{' '.join(command)} with loss", [*command, *common], True


class Side:
    """uib or rxe: how its programs are started. Each has a CPU of its own: three that spin on two would wait for each other."""

    def __init__(self, name, address, cpu, device, prefix=(), environment=None):
        self.name, self.address, self.device, self.environment = name, address, device, environment
        self.prefix = ["taskset", "-c", cpu, *prefix]

    def start(self, command, output):
        return subprocess.Popen([*self.prefix, *command, "-d", self.device], stdin=subprocess.DEVNULL, stdout=output,
                                stderr=subprocess.STDOUT, env=self.environment)


def listening(pid, port):
    with contextlib.suppress(OSError):
        for name in ("tcp", "tcp6"):
            for line in pathlib.Path(f"/proc/{pid}/net/{name}").read_text().splitlines():
                field = line.split()
                if field[3] == "0A" and field[1].endswith(f":{port:04X}"):
                    return True
    return False


def finish(process, end):
    try:
        return process.wait(max(0.1, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return "no end"


def exchange(server, client, command, port):
    """Both statuses and outputs."""
    end = time.monotonic() + (PER_LONG_RUN if "-a" in command else PER_RUN)
    command = [*command, "-p", str(port)]
    with tempfile.TemporaryFile("w+") as first, tempfile.TemporaryFile("w+") as second:
        serving = server.start(command, first)
        # `ip netns exec` becomes the program, so the server's own view of the network is that of its process.
        while not listening(serving.pid, port) and serving.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        calling = client.start([*command, server.address], second)
        statuses = [finish(calling, end), finish(serving, end)]
        first.seek(0)
        second.seek(0)
        return statuses, (f"--- server {server.name}: {statuses[1]}\n{first.read()}\n"
                          f"--- client {client.name}: {statuses[0]}\n{second.read()}")


def figure(text):
    """The last line of figures that a tool printed, short."""
    lines = [line.strip() for line in text.splitlines() if re.search(r"usec/iter|^\s*\d+\s+\d+\s+[\d.]+", line)]
    if "Correlation coefficient" in text:  # it prints zeros then
        return "no figure: perftest found the clock of a busy machine uneven"
    return re.sub(r"\s+", " ", lines[-1]) if lines else ""


def flat(value, name=""):
    """The numbers in what JSON holds, by their path."""
    if isinstance(value, dict):
        value = value.items()
    elif isinstance(value, list):
        value = enumerate(value)
    else:
        return {name: value} if isinstance(value, int) else {}
    return {key: number for part, inner in value for key, number in flat(inner, f"{name}.{part}").items()}


class Guest:
    """In the machine: the engine in the namespace, and the two sides."""

    def __init__(self, directory):
        self.uib = directory / "bin" / "uib"
        socket, config, self.log = (pathlib.Path(f"/run/uib.{suffix}") for suffix in ("sock", "toml", "log"))
        config.write_text(CONFIG)
        self.environment = {**os.environ, "UIB_SOCKET": str(socket)}
        with open(self.log, "w") as log:
            command = ["taskset", "-c", "1", "ip", "netns", "exec", "peer", directory / "bin" / "uibd", "--config", config,
                       "--socket", socket]
            self.engine = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        while not socket.exists() and self.engine.poll() is None:
            time.sleep(0.1)
        ours = Side("uib", OUR_ADDRESS, "1", "uib0", ["ip", "netns", "exec", "peer", self.uib, "run", "--"], self.environment)
        rxe = Side("rxe", RXE_ADDRESS, "0", "rxe2")
        self.ways = ((ours, rxe), (rxe, ours))
        self.port = 20000

    def set_loss(self, share):
        """At our port, both ways. Not by the kernel behind rxe: it would tell rxe, which takes that for a reason to answer RNR
        and then goes on in the middle of a READ response."""
        rule = ["add", "drop", "--direction", "both", "--probability", str(share)] if share else ["remove", "all"]
        subprocess.run([self.uib, "fault", *rule], env=self.environment, stdout=subprocess.DEVNULL, check=True)

    def counters(self):
        status = subprocess.run([self.uib, "status", "--json"], env=self.environment, capture_output=True, text=True)
        with contextlib.suppress(ValueError):
            found = flat(json.loads(status.stdout), "uib")
        for path in pathlib.Path("/sys/class/infiniband/rxe2/ports/1/hw_counters").iterdir():
            with contextlib.suppress(ValueError, OSError):
                found[f"rxe.{path.name}"] = int(path.read_text())
        for cpu, line in enumerate(pathlib.Path("/proc/net/softnet_stat").read_text().splitlines()):
            found[f"backlog of cpu {cpu}: dropped"] = int(line.split()[1], 16)
        for name, where in (("x0", []), ("x1", ["-n", "peer"])):
            shown = subprocess.run(["ip", *where, "-json", "-stats", "link", "show", name], capture_output=True, text=True)
            found.update(flat(json.loads(shown.stdout)[0]["stats64"], name))
        names, values = (line.split()[1:] for line in pathlib.Path("/proc/net/snmp").read_text().splitlines()
                         if line.startswith("Udp:"))
        return found | {f"udp.{name}": int(value) for name, value in zip(names, values)}

    def run(self, name, command, server, client):
        """True if it passed."""
        self.port += 1
        before = self.counters()
        started = time.monotonic()
        statuses, text = exchange(server, client, command, self.port)
        good = statuses == [0, 0] and re.search(r"invalid data|Completion with error|Failed|Problems", text) is None
        say(f"{'ok    ' if good else 'FAILED'} {time.monotonic() - started:6.2f} s  {name}, {server.name} serves: {figure(text)}")
        if not good:
            after = self.counters()
            moved = {key: value - before.get(key, 0) for key, value in after.items() if value != before.get(key, 0)}
            say(f"{text}\n--- moved: {', '.join(f'{key} {value:+}' for key, value in sorted(moved.items()))}")
            dmesg = subprocess.run(["dmesg"], capture_output=True, text=True).stdout.splitlines()[-10:]
            say("\n".join(["--- the kernel's last lines:", *dmesg]))
        return good

    def end(self):
        say(f"the engine's log:\n{self.log.read_text()[-2000:]}")
        self.engine.terminate()


def guest(directory, few, only, repeat):
    machine = Guest(pathlib.Path(directory))
    started, done, failed, lossy = time.monotonic(), 0, [], False
    chosen = [run for run in runs(few) if only in run[0] for _ in range(repeat)]
    for name, command, loss in chosen:
        if loss != lossy:
            machine.set_loss(LOSS if loss else 0)
            lossy = loss
        for server, client in machine.ways:
            done += 1
            if not machine.run(name, command, server, client):
                failed.append(f"{name}, {server.name} serves")
        if machine.engine.poll() is not None:
            say(f"the engine ended with {machine.engine.poll()}")
            break
    if failed:
        machine.end()
        say("failed: " + "; ".join(failed))
    total = len(chosen) * len(machine.ways)
    say(f"{done - len(failed)} of {total} passed in {time.monotonic() - started:.0f} s")
    sys.exit(0 if done == total and not failed else 1)


def machine():
    given = os.environ.get("UIB_PEER_VM")
    path = pathlib.Path(given) if given else uibtest.ROOT.parent / "shared" / "tools" / "peer-vm" / "peer-vm"
    if not path.exists():
        skip(f"no virtual machine: {path} is not there (UIB_PEER_VM names another)")
    uibtest.need_tools("qemu-system-x86_64", "ib_send_bw", "ibv_rc_pingpong")
    if os.geteuid() != 0:
        skip("needs root, for the virtual machine's devices")
    return path


def copy_for_guest(target):
    """The build and the scripts: the guest sees the host's files but those below /tmp and /run. Returns the tree of the scripts."""
    for name in ("bin", "lib", "provider"):
        (target / name).mkdir(parents=True)
        for source in (uibtest.BUILD / name).glob("*"):
            if source.is_file() and (name == "bin" or ".so" in source.name or source.suffix == ".driver"):
                shutil.copy2(source, target / name / source.name)
    tree = target / "tree"
    for source in [*uibtest.ROOT.glob("tests/integration/*.py"), *uibtest.ROOT.glob("tests/bench/*.py")]:
        copy = tree / source.relative_to(uibtest.ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, copy)
    return tree


def test():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--few", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--guest")
    arguments = parser.parse_args()
    if arguments.guest:
        guest(arguments.guest, arguments.few, arguments.only, arguments.repeat)
    vm, limit = machine(), LIMIT_FEW if arguments.few else LIMIT
    say(f"load of the host: {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="uib-interop-") as directory:
        script = copy_for_guest(pathlib.Path(directory)) / HERE.relative_to(uibtest.ROOT)
        command = shlex.join(["/usr/bin/python3", "-B", str(script), "--guest", directory, *sys.argv[1:]])
        with subprocess.Popen([vm, "-t", str(limit), "run", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, cwd="/") as done:
            for line in done.stdout:
                say(line.rstrip())
    if done.returncode == 125:
        skip("the virtual machine does not start here")
    expect(done.returncode == 0, f"status {done.returncode} (124: past {limit} s)")


if __name__ == "__main__":
    uibtest.main(test)
