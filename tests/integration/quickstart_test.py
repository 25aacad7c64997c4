#!/usr/bin/python3
"""examples/with-uib.sh: COMMAND sees the devices, its status is the script's, the engine is gone afterwards; UIB_CONFIG names
the devices."""

import os
import pathlib
import subprocess
import tempfile

import uibtest
from uibtest import expect, say

SCRIPT = uibtest.ROOT / "examples" / "with-uib.sh"


def run(*command, **more):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("UIB_")}
    environment["UIB_BUILD"] = str(uibtest.BUILD)
    environment.update(more)
    return subprocess.run([SCRIPT, *command], stdin=subprocess.DEVNULL, env=environment, capture_output=True, text=True,
                          timeout=60)


def test():
    if not (uibtest.BUILD / "bin" / "uibd").exists():
        uibtest.skip(f"no engine in {uibtest.BUILD}")
    uibtest.need_tools("ibv_devinfo")
    done = run("ibv_devinfo", "-v")
    expect(done.returncode == 0, f"ibv_devinfo under with-uib.sh: {done.stdout}{done.stderr}")
    expect("uib0" in done.stdout and "uib1" in done.stdout, f"ibv_devinfo shows no uib0 and uib1:\n{done.stdout}")
    expect("PORT_ACTIVE" in done.stdout and "InfiniBand" in done.stdout, f"no active InfiniBand port:\n{done.stdout}")
    for status in (0, 1, 42):
        done = run("/bin/sh", "-c", f"exit {status}")
        expect(done.returncode == status, f"exit {status} became {done.returncode}: {done.stderr}")
    done = run("/bin/sh", "-c", "echo $UIB_SOCKET")
    expect(not pathlib.Path(done.stdout.strip()).exists(), "the private engine's socket is left behind")
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as config:
        config.write('[[device]]\nname = "alpha"\n\n[[device]]\nname = "beta"\n\n[[device]]\nname = "gamma"\n')
        config.flush()
        done = run("ibv_devices", UIB_CONFIG=config.name)
        expect(all(name in done.stdout for name in ("alpha", "beta", "gamma")),
               f"configured devices are not there: {done.stdout}{done.stderr}")
    say("with-uib.sh: ok")


if __name__ == "__main__":
    uibtest.main(test)
