"""Run by rdma_core_tests.py where the devices are to be seen: rdma-core's test suite, its outcome in a file.

  rdma_core_runner.py DIRECTORY OUTCOME [ARGUMENTS of the suite's run_tests.py]

DIRECTORY is the suite's package. OUTCOME gets a line per test: passed, failed or skipped, the test's name, the reason.
"""

import importlib
import pathlib
import sys
import unittest


class Result(unittest.TextTestResult):
    outcome = None  # the open file

    def note(self, verdict, test, reason=""):
        reason = " ".join(reason.split())
        Result.outcome.write(f"{verdict}\t{test.id()}\t{reason}\n")

    def addSuccess(self, test):
        super().addSuccess(test)
        self.note("passed", test)

    def addError(self, test, error):
        super().addError(test, error)
        self.note("failed", test, str(error[1]))

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.note("failed", test, str(error[1]))

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error is not None:
            self.note("failed", subtest, str(error[1]))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note("skipped", test, reason)


def main():
    directory = pathlib.Path(sys.argv.pop(1))
    outcome = sys.argv.pop(1)
    sys.path[:0] = [str(directory.parent), str(directory)]
    importlib.import_module("args_parser").parser.parse_args()
    suite = importlib.import_module(directory.name)
    with open(outcome, "w", buffering=1) as Result.outcome:
        unittest.main(module=suite, testRunner=unittest.TextTestRunner(resultclass=Result, verbosity=2))


main()
