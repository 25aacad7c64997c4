#!/usr/bin/python3
"""ibv_import_device, ibv_import_pd and ibv_import_mr between two processes: see import_program.py."""

import pathlib
import subprocess

import uibtest
from uibtest import Engine, expect, say, skip

PROGRAM = pathlib.Path(__file__).with_name("import_program.py")


def test():
    if subprocess.run(["/usr/bin/python3", "-c", "import pyverbs"], stdin=subprocess.DEVNULL).returncode != 0:
        skip("python3-pyverbs is not installed")
    with Engine() as engine:
        result = engine.run(["/usr/bin/python3", PROGRAM], 60)
        say(result.text)
        expect(result.ok, f"the program ended with {result.status}")
        engine.expect_no_objects()
        engine.stop()


if __name__ == "__main__":
    uibtest.main(test)
