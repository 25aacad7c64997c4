"""What the integration tests share: a private engine, unmodified programs run over it with hard time limits, its status.

Environment:
  UIB_BUILD         tree of the programs under test: uib, provider, shim (default build/release)
  UIB_ENGINE_BUILD  tree of the engine, where it differs (a sanitizer's; default UIB_BUILD)
  UIB_ENGINE_LOGS   directory that keeps the engines' logs of failed tests

A test is a script that calls main(); it prints what it did, 'SKIP: reason' with status 77 where it cannot run, and ends with
status 1 and both sides' output where something failed. Only processes that a test started are ended, by their ids.
"""

import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("UIB_BUILD") or ROOT / "build" / "release").resolve()
ENGINE_BUILD = pathlib.Path(os.environ.get("UIB_ENGINE_BUILD") or BUILD).resolve()
SKIPPED = 77
OBJECT_KINDS = ("pd", "mr", "mw", "cq", "qp", "srq", "channel", "dm", "xrcd", "wq", "rwq_table")


class Failure(Exception):
    """A test's expectation that did not hold; the text says what was seen."""


def skip(reason):
    print(f"SKIP: {reason}")
    sys.exit(SKIPPED)


def say(text):
    print(text, flush=True)


def expect(condition, text):
    if not condition:
        raise Failure(text)


def wait_until(condition, seconds, what):
    """Polls until condition() is true; a Failure after `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise Failure(f"not within {seconds} s: {what() if callable(what) else what}")
        time.sleep(0.02)


_next_port = random.SystemRandom().randrange(20000, 29000)


def unique_port():
    """A TCP port that nobody listens on and no other call in this process got."""
    global _next_port
    while True:
        _next_port += 1
        if not listening(_next_port):
            return _next_port


def listening(port):
    wanted = f":{port:04X}"
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(FileNotFoundError), open(name) as table:
            for line in table:
                field = line.split()
                if field[3] == "0A" and field[1].endswith(wanted):
                    return True
    return False


def descriptor_count(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def cpu_seconds(pid):
    """What a process has used of CPUs since its start."""
    with open(f"/proc/{pid}/stat") as line:
        user, system = line.read().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def resident_kib(pid):
    with open(f"/proc/{pid}/status") as status:
        for line in status:
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
    raise Failure(f"process {pid} has no VmRSS")


class Process:
    """A child in a process group of its own, its output in a file, gone at the latest when `end` is called.

    Not in a session of its own: the kernel's autogroups share a CPU out by session, and a loop that yields then gives nothing
    to the engine of another session until it has burnt as much time as that (twice the latency on two CPUs).
    """

    def __init__(self, command, directory, environment=None, user=None, name=None, pass_fds=()):
        self.command = [str(part) for part in command]
        self.name = name or pathlib.Path(self.command[0]).name
        self.output_file = tempfile.NamedTemporaryFile(dir=directory, prefix="out-", delete=False)
        wrapped = self.command
        if user is not None:
            wrapped = ["/usr/bin/setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--"] + wrapped
        self.process = subprocess.Popen(wrapped, stdin=subprocess.DEVNULL, stdout=self.output_file,
                                        stderr=subprocess.STDOUT, env=environment, process_group=0,
                                        pass_fds=pass_fds)
        self.pid = self.process.pid

    def wait(self, seconds):
        """Exit status, or None if it still runs after `seconds`."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def running(self):
        return self.process.poll() is None

    def send(self, number):
        """Signals the whole group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def end(self):
        if self.running():
            self.send(signal.SIGKILL)
            self.process.wait(10)
        self.output_file.close()

    def output(self):
        with open(self.output_file.name, errors="replace") as text:
            return text.read()


class Result:
    def __init__(self, status, text, what, seconds):
        self.status, self.text, self.what, self.seconds = status, text, what, seconds

    @property
    def ok(self):
        return self.status == 0


class Engine:
    """A private engine with its socket in a directory of its own. Use as a context manager."""

    def __init__(self, config=None, user=None, log_level="info"):
        if not (ENGINE_BUILD / "bin" / "uibd").exists():
            skip(f"no engine at {ENGINE_BUILD}/bin/uibd")
        if not (BUILD / "bin" / "uib").exists():
            skip(f"no uib at {BUILD}/bin/uib")
        self.user = user
        self.log_level = log_level
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="uib-test-"))
        self.build, self.engine_build = BUILD, ENGINE_BUILD
        if user is not None:
            self._copy_builds()
        self.socket = self.directory / "engine.sock"
        self.config = None
        if config is not None:
            self.config = self.directory / "uib.toml"
            self.config.write_text(config)
        self.process = None

    def _copy_builds(self):
        """The build tree may lie where an ordinary user cannot go: gives it a copy of what it needs."""
        target = self.directory / "build"
        for name in ("bin", "lib", "provider"):
            (target / name).mkdir(parents=True)
            for source in (BUILD / name).glob("*"):
                if source.is_file() and (name == "bin" or ".so" in source.name or source.suffix == ".driver"):
                    shutil.copy2(source, target / name / source.name)
        self.build = self.engine_build = target
        for path in [self.directory, *self.directory.rglob("*")]:
            os.chown(path, self.user, self.user)

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind, value, trace):
        if kind is not None and kind is not SystemExit:
            self.print_log()
        self.close()

    def environment(self):
        dropped = ("UIB_SOCKET", "UIB_CONFIG", "UIB_BUILD", "LD_PRELOAD", "XDG_RUNTIME_DIR")
        environment = {k: v for k, v in os.environ.items() if k not in dropped}
        environment["UIB_SOCKET"] = str(self.socket)
        environment["TMPDIR"] = str(self.directory)
        return environment

    def command(self):
        command = [self.engine_build / "bin" / "uibd", "--socket", self.socket, "--log-level", self.log_level]
        if self.config is not None:
            command += ["--config", self.config]
        return command

    def start(self):
        read_end, write_end = os.pipe()
        try:
            self.process = Process(self.command() + ["--ready-fd", str(write_end)], self.directory, self.environment(),
                                   self.user, "uibd", pass_fds=(write_end,))
        finally:
            os.close(write_end)
        try:
            os.set_blocking(read_end, False)
            answer = []

            def ready():
                with contextlib.suppress(BlockingIOError):
                    answer.append(os.read(read_end, 16))
                return bool(answer)

            wait_until(ready, 20, lambda: f"the engine is ready; it printed:\n{self.process.output()}")
            expect(answer[0] != b"", f"the engine ended at once:\n{self.process.output()}")
        finally:
            os.close(read_end)

    @property
    def pid(self):
        return self.process.pid

    def uib(self, *arguments):
        return [self.build / "bin" / "uib", *arguments]

    def run(self, command, seconds=60):
        """Runs one program over the engine."""
        process = self.spawn(command)
        started = time.monotonic()
        status = process.wait(seconds)
        process.end()
        return Result(status, process.output(), " ".join(process.command), time.monotonic() - started)

    def spawn(self, command, name=None):
        return Process(self.uib("run", "--", *command), self.directory, self.environment(), self.user,
                       name or pathlib.Path(str(command[0])).name)

    def listening(self, port):
        """Whether a program beside this engine listens."""
        return listening(port)

    def spawn_pair(self, server_command, client_command, port):
        """Server, then client once the server listens on the port."""
        server = self.spawn(server_command, "server")
        try:
            wait_until(lambda: listening(port) or not server.running(), 15, "server listens")
            return server, self.spawn(client_command, "client")
        except BaseException:
            server.end()
            raise

    def pair(self, server_command, client_command, port, seconds=60):
        """Runs both to their ends. Result.status is 0 only if both ended with 0 in time; the text has both outputs."""
        started = time.monotonic()
        try:
            server, client = self.spawn_pair(server_command, client_command, port)
        except Failure as failure:
            return Result(1, str(failure), " ".join(map(str, server_command)), time.monotonic() - started)
        try:
            end = started + seconds
            while (client.running() or server.running()) and time.monotonic() < end:
                for side in (client, server):
                    if not side.running() and side.wait(0) != 0:
                        end = min(end, time.monotonic() + 2)  # its peer would only sit the limit out
                time.sleep(0.01)
            client_status, server_status = client.wait(0), server.wait(0)
        finally:
            client.end()
            server.end()
        seconds_taken = time.monotonic() - started
        text = ""
        for side, status in ((server, server_status), (client, client_status)):
            shown = f"status {status}" if status is not None else "still ran at its time limit and was ended"
            text += f"--- {side.name}: {' '.join(side.command[3:])} ({shown})\n{side.output()}\n"
        status = 0 if client_status == 0 and server_status == 0 else 1
        return Result(status, text, " ".join(client.command[3:]), seconds_taken)

    def status(self):
        done = subprocess.run([str(part) for part in self.uib("status", "--json")], env=self.environment(),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20)
        expect(done.returncode == 0, f"uib status: {done.stderr}\nengine: {self.process.output()[-2000:]}")
        return json.loads(done.stdout)

    def objects(self):
        objects = self.status()["objects"]
        return {kind: objects.get(kind, 0) for kind in OBJECT_KINDS}

    def expect_no_objects(self, seconds=5, clients=True):
        """All clients' objects are gone; waits up to `seconds` for it."""
        last = {}

        def empty():
            status = self.status()
            last.clear()
            last.update({k: v for k, v in status["objects"].items() if v}, clients=len(status["clients"]))
            return not any(status["objects"].get(kind, 0) for kind in OBJECT_KINDS) and \
                not (clients and status["clients"])

        wait_until(empty, seconds, lambda: f"object counts back to zero, left: {last}")

    def expect_healthy(self):
        """The engine runs and a fresh pair of clients gets its data through."""
        expect(self.process.running(), f"the engine ended: {self.process.output()[-4000:]}")
        port = unique_port()
        result = self.pair(["ibv_rc_pingpong", "-n", "50", "-p", port],
                           ["ibv_rc_pingpong", "-n", "50", "-p", port, "127.0.0.1"], port, 20)
        expect(result.ok, f"the engine does not serve a pingpong any more:\n{result.text}")

    def print_log(self):
        if self.process is not None:
            say(f"--- engine's log, last lines\n{self.process.output()[-6000:]}")

    def stop(self, seconds=10):
        """Ends the engine in good order; a Failure where it does not end or reports an error (a sanitizer's, say)."""
        self.process.send(signal.SIGTERM)
        status = self.process.wait(seconds)
        expect(status is not None, "the engine does not end on SIGTERM")
        expect(status == 0, f"the engine ended with status {status}:\n{self.process.output()[-6000:]}")

    def close(self):
        if self.process is not None:
            self.process.end()
            logs = os.environ.get("UIB_ENGINE_LOGS")
            if logs and os.path.isdir(logs):
                test = pathlib.Path(sys.argv[0]).stem
                shutil.copyfile(self.process.output_file.name, pathlib.Path(logs) / f"engine-{test}.log")
        shutil.rmtree(self.directory, ignore_errors=True)


def need_tools(*names):
    for name in names:
        if shutil.which(name) is None:
            skip(f"{name} is not installed")


def main(test):
    """Runs test() and turns its outcome into an exit status."""
    try:
        test()
    except Failure as failure:
        say(f"FAILED: {failure}")
        sys.exit(1)
    sys.exit(0)
