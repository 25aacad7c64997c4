#!/usr/bin/python3
"""uib over RoCE v2 against the kernel's Soft-RoCE (rdma_rxe), in a throw-away virtual machine: pingpongs and perftest, uib as
server and as client, with and without loss.

  rxe_interop.py            boots the machine, runs this script in it, shows what it printed
  rxe_interop.py --only X   only runs whose name contains X
  rxe_interop.py --guest DIRECTORY ...   what runs in the machine, over the build in DIRECTORY

The machine is ../shared/tools/peer-vm/peer-vm beside the checkout, or what UIB_PEER_VM names; without it the test is skipped.
"""

import argparse
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import uibtest
from uibtest import expect, say, skip

HERE = pathlib.Path(__file__).resolve()
LIMIT = 560
# rxe's device rxe2 is on x0, in the first namespace; x1, its other end, is in the namespace "peer".
RXE_ADDRESS, OUR_ADDRESS = "10.78.0.1", "10.78.0.2"
CONFIG = '[[device]]\nname = "uib0"\nport = { link = "roce", driver = "af_packet", interface = "x1" }\n'
GID = "1"

PINGPONGS = (["ibv_rc_pingpong", "-c"], ["ibv_rc_pingpong", "-c", "-e"], ["ibv_rc_pingpong", "-c", "-m", "4096", "-s", "65536"],
             ["ibv_uc_pingpong", "-c"], ["ibv_ud_pingpong", "-c", "-s", "1000"], ["ibv_srq_pingpong", "-c"])
# Perftest takes each side's largest number of outstanding READs for the other's limit: between adapters whose limits differ
# (rxe's is 128) it must be told one.
READS = ["-o", "16"]
PERFTEST = (["ib_send_lat"], ["ib_send_bw"], ["ib_write_lat"], ["ib_write_bw"], ["ib_read_lat", *READS], ["ib_read_bw", *READS],
            ["ib_atomic_lat", *READS], ["ib_atomic_bw", *READS], ["ib_atomic_bw", "-A", "CMP_AND_SWAP", *READS],
            ["ib_send_bw", "-c", "UD", "-s", "1024"], ["ib_send_lat", "-c", "UC"], ["ib_send_bw", "-s", "262144"])
# UC and UD lose what is lost.
WITH_LOSS = (PINGPONGS[0], ["ib_send_bw"], ["ib_write_bw"], ["ib_read_bw", *READS], ["ib_atomic_bw", *READS])
TRIES = 3  # of the services that may lose a packet without any fault: for want of a buffer on a busy machine


def runs():
    """(name, command without its device, loss)."""
    for command in PINGPONGS:
        yield " ".join(command), [*command, "-g", GID, "-n", "100"], False
    for command in PERFTEST:
        yield " ".join(command), [*command, "-F", "-x", GID, "-n", "20" if "262144" in command else "100"], False
    for command in WITH_LOSS:
        common = ["-g", GID, "-n", "200"] if "pingpong" in command[0] else ["-F", "-x", GID, "-n", "100"]
        yield f"{' '.join(command)} with loss", [*command, *common], True


class Side:
    """uib or rxe: how its programs are started. Each has a CPU of its own: three that spin on two would wait for each other."""

    def __init__(self, name, cpu, device, prefix=(), environment=None):
        self.name, self.device, self.environment = name, device, environment
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


def exchange(server, client, address, command, port, seconds):
    """Both statuses and outputs."""
    command = [*command, "-p", str(port)]
    end = time.monotonic() + seconds
    with tempfile.TemporaryFile("w+") as first, tempfile.TemporaryFile("w+") as second:
        serving = server.start(command, first)
        # `ip netns exec` becomes the program, so the server's own view of the network is that of its process.
        while not listening(serving.pid, port) and serving.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        calling = client.start([*command, address], second)
        statuses = [finish(calling, end), finish(serving, end)]
        first.seek(0)
        second.seek(0)
        return statuses, f"--- server {server.name}: {statuses[1]}\n{first.read()}\n--- client {client.name}: {statuses[0]}\n{second.read()}"


def figure(text):
    """The last line of figures that a tool printed, short."""
    lines = [line.strip() for line in text.splitlines() if re.search(r"usec/iter|^\s*\d+\s+\d+\s+[\d.]+", line)]
    return re.sub(r"\s+", " ", lines[-1]) if lines else ""


def set_loss(uib, share, environment):
    """At our port, both ways. Not by the kernel behind rxe: it would tell rxe, which takes that for a reason to answer RNR and
    then goes on in the middle of a READ response."""
    rule = ["add", "drop", "--direction", "both", "--probability", str(share)] if share else ["remove", "all"]
    subprocess.run([uib, "fault", *rule], env=environment, stdout=subprocess.DEVNULL, check=True)


def guest(directory, only):
    """In the machine: the engine in namespace peer, then all runs both ways."""
    directory = pathlib.Path(directory)
    socket, config = pathlib.Path("/run/uib.sock"), pathlib.Path("/run/uib.toml")
    config.write_text(CONFIG)
    environment = {**os.environ, "UIB_SOCKET": str(socket)}
    with open("/run/uibd.log", "w") as log:
        engine = subprocess.Popen(["taskset", "-c", "1", "ip", "netns", "exec", "peer", directory / "bin" / "uibd", "--config", config,
                                   "--socket", socket], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    while not socket.exists() and engine.poll() is None:
        time.sleep(0.1)
    ours = Side("uib", "1", "uib0", ["ip", "netns", "exec", "peer", directory / "bin" / "uib", "run", "--"], environment)
    rxe = Side("rxe", "0", "rxe2")
    failed, passed, port, lossy = [], 0, 20000, False
    for name, command, loss in runs():
        if only not in name:
            continue
        if loss != lossy:
            set_loss(directory / "bin" / "uib", 0.01 if loss else 0, environment)
            lossy = loss
        for server, client, address in ((ours, rxe, OUR_ADDRESS), (rxe, ours, RXE_ADDRESS)):
            started = time.monotonic()
            unreliable = re.search(r"_u[cd]_|UC|UD", name) is not None
            for _ in range(TRIES if unreliable else 1):
                port += 1
                statuses, text = exchange(server, client, address, command, port, 15 if unreliable else 40)
                good = statuses == [0, 0] and re.search(r"invalid data|Completion with error|Failed|Problems", text) is None
                if good or statuses != ["no end", "no end"]:
                    break
            say(f"{'ok    ' if good else 'FAILED'} {time.monotonic() - started:6.2f} s  {name}, {server.name} serves: {figure(text)}")
            if good:
                passed += 1
            else:
                failed.append(f"{name}, {server.name} serves")
                say(text)
            if engine.poll() is not None:
                say(f"the engine ended with {engine.poll()}")
                break
    status = subprocess.run([directory / "bin" / "uib", "status", "--json"], env=environment, capture_output=True, text=True)
    shown = sorted(set(re.findall(r'"(?:port_)?(\w+)": ([1-9]\d*)', status.stdout)))
    say(f"counters: {', '.join(f'{key} {value}' for key, value in shown)}")
    say(pathlib.Path("/run/uibd.log").read_text()[-2000:] if failed else "")
    engine.terminate()
    say(f"rxe interop: {passed} passed, {len(failed)} failed")
    sys.exit(1 if failed else 0)


def machine():
    given = os.environ.get("UIB_PEER_VM")
    path = pathlib.Path(given) if given else uibtest.ROOT.parent / "shared" / "tools" / "peer-vm" / "peer-vm"
    if not path.exists():
        skip(f"no virtual machine: {path} is not there (UIB_PEER_VM names another)")
    uibtest.need_tools("qemu-system-x86_64", "ib_send_bw", "ibv_rc_pingpong")
    if os.geteuid() != 0:
        skip("needs root, for the virtual machine's devices")
    return path


def copy_build(target):
    """The guest sees the host's files but those below /tmp and /run."""
    for name in ("bin", "lib", "provider"):
        (target / name).mkdir(parents=True)
        for source in (uibtest.BUILD / name).glob("*"):
            if source.is_file() and (name == "bin" or ".so" in source.name or source.suffix == ".driver"):
                shutil.copy2(source, target / name / source.name)


def test():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--guest")
    arguments = parser.parse_args()
    if arguments.guest:
        guest(arguments.guest, arguments.only)
    vm = machine()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="uib-interop-") as directory:
        copy_build(pathlib.Path(directory))
        command = f"/usr/bin/python3 -B {HERE} --guest {directory} --only='{arguments.only}'"
        done = subprocess.run([vm, "-t", str(LIMIT), "run", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, cwd="/", timeout=LIMIT + 60)
    say(done.stdout)
    say(f"the machine ran for {time.monotonic() - started:.0f} s, load {os.getloadavg()[0]:.1f}")
    if done.returncode == 125:
        skip("the virtual machine does not start here")
    expect(done.returncode == 0, f"status {done.returncode} (124: past {LIMIT} s)")


if __name__ == "__main__":
    uibtest.main(test)
