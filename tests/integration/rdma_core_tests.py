#!/usr/bin/python3
"""rdma-core's own test suite over a private engine, once for each link layer that its devices can have.

  rdma_core_tests.py [--link-layer infiniband|ethernet] [--verbose]

The suite is not kept here: Debian's python3-pyverbs, whose library it tests, brings it along as documentation. Where that was
left out at installation the package is fetched anew and unpacked.

No test may fail, or be skipped but for a reason that SKIPS knows, and only a test that it knows it of.
"""

import argparse
import collections
import contextlib
import gzip
import os
import pathlib
import re
import shutil
import subprocess

import uibtest
from uibtest import Engine, expect, say, skip

INSTALLED = pathlib.Path("/usr/share/doc/rdma-core/tests")
RUNNER = pathlib.Path(__file__).with_name("rdma_core_runner.py")
HUGE_PAGES = pathlib.Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
HUGE_PAGES_WANTED = 32
SECONDS = 120
FEWEST_PASSED = 100
LINK_LAYERS = ("infiniband", "ethernet")

# What the suite says, which tests may say it, on which link layers, and what it means.
SKIPS = [
    ("MLX5|mlx5", r"test_mlx5_", LINK_LAYERS, "interface of another vendor's adapters (mlx5dv)"),
    ("EFA", r"test_efa", LINK_LAYERS, "interface of another vendor's adapters (efadv)"),
    ("Converting timestamp to nanoseconds", r"test_mlx5_timestamp", LINK_LAYERS,
     "mlx5dv's conversion of timestamps; those of uib are nanoseconds"),
    ("PCI device must be passed", r"test_mlx5_vfio", LINK_LAYERS, "adapters driven by the program itself (mlx5dv, VFIO)"),
    ("No supported port is up", r"test_mlx5_udp_sport", ("infiniband",), "mlx5dv's UDP source ports of RoCE"),
    ("Extended CQ is not supported", r"test_tag_matching", LINK_LAYERS, "tag matching, an offload of other adapters"),
    ("cuda-python", r"cuda", LINK_LAYERS, "memory of a GPU: no CUDA here"),
    ("dmabuf is not supported by /dev/dri", r"(?i)dmabuf", LINK_LAYERS, "memory of a GPU: no /dev/dri here"),
    ("no huge pages of size 2M", r"huge", LINK_LAYERS, "huge pages: none here, and this user cannot have them made"),
    ("doesn't have net interface", r"rdmacm", LINK_LAYERS, "connection manager: the device has no IP interface"),
    ("Ethernet link layer", r"test_flow|test_rss|[Rr]aw|mlx5_timestamp", ("infiniband",), "raw Ethernet frames"),
    ("is InfiniBand , skip RoCE", r"test_addr", ("infiniband",), "RoCE"),
]


def unpacked_package(directory):
    """Fetches python3-pyverbs and gives its copy of the suite, or None and why not."""
    fetched = subprocess.run(["apt-get", "download", "python3-pyverbs"], cwd=directory, stdin=subprocess.DEVNULL,
                             capture_output=True, text=True, timeout=60)
    packages = list(directory.glob("python3-pyverbs_*.deb"))
    if fetched.returncode != 0 or not packages:
        return None, f"apt-get download: {fetched.stderr.strip()}"
    subprocess.run(["dpkg-deb", "--extract", packages[0], directory / "package"], check=True, timeout=60)
    suite = directory / "package" / INSTALLED.relative_to("/")
    return (suite, "") if suite.is_dir() else (None, "the package python3-pyverbs is without the suite")


def find_suite(directory):
    """A copy of the suite in plain files."""
    source, why = (INSTALLED, "") if (INSTALLED / "run_tests.py").exists() else unpacked_package(directory)
    if source is None:
        skip(f"rdma-core's tests are not installed and cannot be fetched: {why}")
    suite = directory / "tests"
    suite.mkdir()
    for path in source.iterdir():
        if path.suffix == ".gz":
            (suite / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
        elif path.suffix == ".py":
            shutil.copyfile(path, suite / path.name)
    return suite


@contextlib.contextmanager
def huge_pages():
    """Has some made for the time of the run, where the machine has none and lets this user do it."""
    try:
        before = HUGE_PAGES.read_text()
        if int(before) < HUGE_PAGES_WANTED:
            HUGE_PAGES.write_text(str(HUGE_PAGES_WANTED))
    except OSError as error:
        say(f"no huge pages: {error}")
        yield
        return
    try:
        yield
    finally:
        if HUGE_PAGES.read_text() != before:
            HUGE_PAGES.write_text(before)


def meaning_of(test, reason, link_layer):
    for said, tests, layers, meaning in SKIPS:
        if link_layer in layers and re.search(said, reason) and re.search(tests, test):
            return meaning
    return None


def judge(lines, link_layer):
    """Prints what came of the tests; the failures' and unexpected skips' names."""
    passed, bad, skipped = 0, [], collections.Counter()
    for line in lines:
        verdict, test, reason = line.split("\t")
        if verdict == "passed":
            passed += 1
            continue
        meaning = meaning_of(test, reason, link_layer) if verdict == "skipped" else None
        if meaning is None:
            bad.append(f"{test} {verdict}: {reason}")
        else:
            skipped[meaning] += 1
    say(f"{link_layer}: {passed} passed, {len(bad)} failed, {skipped.total()} skipped")
    for meaning, count in skipped.most_common():
        say(f"    {count:4} skipped   {meaning}")
    return passed, bad


def run(link_layer, verbose):
    with Engine(config=f'[engine]\nlink_layer = "{link_layer}"\n', log_level="warning") as engine, huge_pages():
        suite = find_suite(engine.directory)
        outcome = engine.directory / "outcome"
        result = engine.run(["/usr/bin/python3", "-B", RUNNER, suite, outcome, "--dev", "uib0"], SECONDS)
        lines = outcome.read_text().splitlines() if outcome.exists() else []
        passed, bad = judge(lines, link_layer)
        if bad or verbose or result.status not in (0, 1):
            say(result.text)
        expect(result.status is not None, f"the suite still ran after {SECONDS} s and was ended")
        expect(not bad, f"{link_layer}:\n  " + "\n  ".join(bad))
        expect(result.status in (0, 1), f"the suite ended with {result.status}")
        expect(passed >= FEWEST_PASSED, f"no more than {passed} tests passed: the suite did not run as it should")
        engine.expect_no_objects()
        engine.stop()


def test():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--link-layer", choices=LINK_LAYERS)
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    if subprocess.run(["/usr/bin/python3", "-c", "import pyverbs"], stdin=subprocess.DEVNULL).returncode != 0:
        skip("python3-pyverbs is not installed")
    for link_layer in [arguments.link_layer] if arguments.link_layer else LINK_LAYERS:
        run(link_layer, arguments.verbose)


if __name__ == "__main__":
    uibtest.main(test)
