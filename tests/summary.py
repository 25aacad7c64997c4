"""Closing lines of tests/run.sh: reads ctest's JUnit files and the steps' own results, prints failures, skips with their
reasons, each step's summary, and last 'N passed, N failed, N skipped'. Exits with 1 if anything failed."""

import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree


def skip_reason(case):
    """What the test printed about why it was skipped: our 'SKIP: reason', else GoogleTest's message."""
    output = case.findtext("system-out") or ""
    found = re.search(r"^SKIP: (.*)$", output, re.MULTILINE)
    if found:
        return found.group(1)
    found = re.search(r"Skipped\n(.+?)\n\n?\[  SKIPPED \]", output, re.DOTALL)
    if found:
        return " ".join(found.group(1).split())
    element = case.find("skipped")
    message = element.get("message") if element is not None else None
    return message or "no reason given"


def could_not_start(case):
    """A test whose program is missing counts as failed, as ctest counts it, and not as skipped."""
    element = case.find("skipped")
    return element is not None and "Unable to find executable" in (element.get("message") or "")


def last_lines(case, count=25, width=300):
    """Of a failed test's output, so that the closing lines alone say what went wrong."""
    lines = [line[:width] for line in (case.findtext("system-out") or "no output").splitlines() if line.strip()]
    return "".join(f"\n    {line}" for line in lines[-count:])


def read_junit(path):
    """(passed, failed, skipped) lists of (name, note)."""
    passed, failed, skipped = [], [], []
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = f"{path.stem}: {case.get('name')}"
        status = case.get("status")
        if case.find("failure") is not None or status == "fail" or could_not_start(case):
            failed.append((name, last_lines(case)))
        elif case.find("skipped") is not None or status in ("notrun", "disabled"):
            skipped.append((name, skip_reason(case)))
        else:
            passed.append((name, ""))
    return passed, failed, skipped


def main():
    directory = pathlib.Path(sys.argv[1])
    passed, failed, skipped = [], [], []
    print()
    for path in sorted(directory.glob("*.xml")):
        results = read_junit(path)
        total = sum(len(part) for part in results)
        print(f"{path.stem}: {len(results[0])} of {total} tests passed, {len(results[1])} failed, "
              f"{len(results[2])} skipped")
        for all_of, part in zip((passed, failed, skipped), results):
            all_of.extend(part)
    for path in sorted(directory.glob("*.step")):
        for line in path.read_text().splitlines():
            verdict, name, note = (line.split("\t") + ["", ""])[:3]
            (passed if verdict == "passed" else failed).append((name, note))
    for name, reason in skipped:
        print(f"skipped: {name}: {reason}")
    for name, note in failed:
        print(f"failed: {name}{': ' + note if note else ''}")
    print(f"{len(passed)} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
