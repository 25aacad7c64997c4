"""What the conformance tests cover of a table of statements, and whether that is all of it.

    coverage.py TABLE PROGRAM... [--also PROGRAM...]

TABLE has a line a statement: id, section, kind (mandatory, optional, obsolete) and, for one that does not apply to this
adapter, the reason. PROGRAMs are GoogleTest programs whose tests name the rows they show as the property `rows` (and
`xrc_rows`; see conformance.h), separated by blanks. Those behind --also have tests of other things, too, and rows of other
tables: of them only what names rows of this table counts. Prints the coverage. Fails on a failed or skipped test, on a row that
applies and that no passing test names or a failing one does, and on marks that name unknown rows or rows that do not apply."""

import collections
import json
import pathlib
import subprocess
import sys
import tempfile

MARKS = ("rows", "xrc_rows")


def read_table(path):
    """{id: (kind, reason or '')}, in the table's order."""
    rows = {}
    for line in path.read_text().splitlines()[1:]:
        name, _section, kind, reason = (line.split("\t") + [""])[:4]
        if name in rows:
            sys.exit(f"{path}: row {name} stands twice")
        rows[name] = (kind, reason)
    return rows


def run(program):
    """[(test, verdict, rows)] of one program; verdict is 'passed', 'failed' or 'skipped'."""
    with tempfile.TemporaryDirectory() as directory:
        report = pathlib.Path(directory) / "report.json"
        done = subprocess.run([program, f"--gtest_output=json:{report}", "--gtest_brief=1"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=300, check=False)
        if done.returncode:
            print(done.stdout)
        if not report.exists():
            sys.exit(f"{program} ended with {done.returncode} and without a report")
        suites = json.loads(report.read_text())["testsuites"]
    tests = []
    for case in (case for suite in suites for case in suite["testsuite"]):
        verdict = "passed" if case["result"] == "COMPLETED" else "skipped"
        if "failures" in case:
            verdict = "failed"
        marks = [row for key in MARKS for row in case.get(key, "").split()]
        tests.append((f"{case['classname']}.{case['name']}", verdict, marks))
    return tests


def run_also(program, rows):
    """The tests of `program` that name rows of the table, with those rows."""
    known = ((name, verdict, [row for row in marks if row in rows]) for name, verdict, marks in run(program))
    return [test for test in known if test[2]]


def reason_class(reason):
    """'TCA only' of 'TCA only: uib is an HCA, ...': what reasons are counted by."""
    return reason.split(":")[0]


def print_coverage(rows, shown, tests):
    for kind in ("mandatory", "optional"):
        of_kind = {name: reason for name, (its_kind, reason) in rows.items() if its_kind == kind}
        applicable = [name for name, reason in of_kind.items() if not reason]
        tested = [name for name in applicable if name in shown]
        print(f"{kind}: {len(of_kind)} rows, {len(applicable)} applicable, {len(tested)} tested")
        reasons = collections.Counter(reason_class(reason) for reason in of_kind.values() if reason)
        for reason, count in sorted(reasons.items()):
            print(f"    not applicable, {reason}: {count}")
    print(f"obsolete: {sum(1 for kind, _ in rows.values() if kind == 'obsolete')} rows")
    verdicts = collections.Counter(verdict for _, verdict, _ in tests)
    print(f"tests: {len(tests)}, of them {verdicts['passed']} passed, {verdicts['failed']} failed, "
          f"{verdicts['skipped']} skipped")


def main():
    rows = read_table(pathlib.Path(sys.argv[1]))
    programs, _, also = " ".join(sys.argv[2:]).partition(" --also ")
    tests = [test for program in programs.split() for test in run(program)]
    tests += [test for program in also.split() for test in run_also(program, rows)]
    shown, broken, problems = set(), set(), []
    for name, verdict, marks in tests:
        if verdict != "passed":
            problems.append(f"{name} {verdict}")
        if not marks:
            problems.append(f"{name} names no row")
        for row in marks:
            if row not in rows:
                problems.append(f"{name} names row {row}, which the table does not have")
            elif rows[row][1]:
                problems.append(f"{name} names row {row}, which does not apply: {rows[row][1]}")
            (shown if verdict == "passed" else broken).add(row)
    shown -= broken
    for row, (_, reason) in rows.items():
        if not reason and row not in shown:
            problems.append(f"row {row} is not tested" + (": its test does not pass" if row in broken else ""))
    print_coverage(rows, shown, tests)
    for problem in problems:
        print(f"problem: {problem}")
    print(f"{len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
