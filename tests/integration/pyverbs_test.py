#!/usr/bin/python3
"""A program over Debian's pyverbs and the engine: pyverbs_program.py, or the one of this directory that is named.

  pyverbs_test.py [PROGRAM]
"""

import pathlib
import subprocess
import sys

import uibtest
from uibtest import Engine, expect, say, skip

PROGRAM = pathlib.Path(__file__).with_name(sys.argv[1] if len(sys.argv) > 1 else "pyverbs_program.py")


def test():
    if subprocess.run(["/usr/bin/python3", "-c", "import pyverbs"], stdin=subprocess.DEVNULL).returncode != 0:
        skip("python3-pyverbs is not installed")
    with Engine() as engine:
        result = engine.run(["/usr/bin/python3", PROGRAM], 60)
        say(result.text)
        expect(result.ok, f"{PROGRAM.name} ended with {result.status}")
        engine.expect_no_objects()
        engine.stop()


if __name__ == "__main__":
    uibtest.main(test)
