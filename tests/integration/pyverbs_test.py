#!/usr/bin/python3
"""A program over Debian's pyverbs and the engine: pyverbs_program.py, or the one of this directory that is named.

  pyverbs_test.py [--helper] [PROGRAM]
      --helper   the kernel lets the engine reach no client's memory, as in helper_mode_test.py
"""

import argparse
import os
import pathlib
import subprocess

import uibtest
from uibtest import Engine, expect, say, skip

NOBODY = 65534


def test():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--helper", action="store_true")
    parser.add_argument("program", nargs="?", default="pyverbs_program.py")
    arguments = parser.parse_args()
    program = pathlib.Path(__file__).with_name(arguments.program)
    if arguments.helper and os.geteuid() != 0:
        skip("needs root, to run engine and clients as different users")
    if subprocess.run(["/usr/bin/python3", "-c", "import pyverbs"], stdin=subprocess.DEVNULL).returncode != 0:
        skip("python3-pyverbs is not installed")
    with Engine(user=NOBODY if arguments.helper else None) as engine:
        engine.user = None
        result = engine.run(["/usr/bin/python3", program], 60)
        say(result.text)
        expect(result.ok, f"{program.name} ended with {result.status}")
        if arguments.helper:
            expect("is reached directly" not in engine.process.output(), "the engine reached a client's memory itself")
        engine.expect_no_objects()
        engine.stop()


if __name__ == "__main__":
    uibtest.main(test)
