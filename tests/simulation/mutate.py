#!/usr/bin/env python3
"""Takes rules of the transport machines away, one at a time, and shows which tests notice.

Copies the tree, applies one mutation of mutations.py, builds the transport with its unit tests, packet scripts and
simulation, runs them, takes the mutation back. Prints a table. Exit status 1 if a mutation survives or no longer
applies, 2 if one does not build.

  mutate.py [--source DIR] [--work DIR] [--seeds N] [--only NAME ...] [--without COMPONENT ...]
  mutate.py --check      only looks whether every replacement still applies (a second's work)
"""
import argparse
import os
import re
import resource
import shutil
import subprocess
import sys

from mutations import MUTATIONS

HERE = os.path.dirname(os.path.abspath(__file__))
COMPONENTS = ["net", "engine/ipc", "engine/memory", "engine/transport", "tests/unit", "tests/conformance", "tests/simulation"]
TREES = ["net", "engine", "tests/unit", "tests/conformance", "tests/simulation"]
BINARIES = ["tests/unit/transport/transport_test", "tests/conformance/transport_conformance_test", "tests/simulation/simulation_test"]
SECONDS = 120
MEMORY = 6 << 30


def mutated(source, mutation):
    """The file's text with the mutation; None if its text does not occur exactly once."""
    _, _, path, text, replacement = mutation
    try:
        with open(os.path.join(source, path), encoding="utf-8") as file:
            whole = file.read()
    except FileNotFoundError:
        return None
    return whole.replace(text, replacement) if whole.count(text) == 1 else None


def check(source):
    lost = [m[0] for m in MUTATIONS if mutated(source, m) is None]
    for name in lost:
        print(f"mutation {name} no longer applies: bring its text in mutations.py up to date")
    return lost


def copy_tree(source, work):
    shutil.rmtree(os.path.join(work, "tree"), ignore_errors=True)
    for tree in TREES:
        if os.path.isdir(os.path.join(source, tree)):
            shutil.copytree(os.path.join(source, tree), os.path.join(work, "tree", tree),
                            ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(os.path.join(source, "CMakeLists.txt"), os.path.join(work, "tree"))
    return os.path.join(work, "tree")


def build(tree, work, without):
    components = [c for c in COMPONENTS if c not in without and os.path.exists(os.path.join(tree, c, "CMakeLists.txt"))]
    subprocess.run(["cmake", "-S", tree, "-B", os.path.join(work, "build"), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=None",
                    "-DCMAKE_CXX_FLAGS=-O1", "-DUIB_COMPONENTS=" + ";".join(components)],
                   check=True, stdout=subprocess.DEVNULL)
    targets = [os.path.basename(b) for b in BINARIES if os.path.dirname(b) not in without and
               os.path.exists(os.path.join(tree, os.path.dirname(b), "CMakeLists.txt"))]
    return subprocess.run(["ninja", "-C", os.path.join(work, "build"), "-j2"] + targets, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)


def run(binary, seeds):
    """What noticed: names of failed tests, the first failing seeds, or how the program ended."""
    environment = dict(os.environ, UIB_SIMULATION_SEEDS=str(seeds))
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    try:
        ended = subprocess.run([binary, "--gtest_brief=1"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               errors="replace", timeout=SECONDS, env=environment, preexec_fn=limit, check=False)
    except subprocess.TimeoutExpired:
        return ["does not end"], []
    failed = sorted({re.sub(r",? where .*| \(.*", "", line[len("[  FAILED  ] "):])
                     for line in ended.stdout.splitlines() if line.startswith("[  FAILED  ] ") and "." in line})
    seeds_seen = sorted(int(n) for n in re.findall(r"^seed (\d+):", ended.stdout, re.M))
    if ended.returncode != 0 and not failed:
        failed = [f"ends with {ended.returncode}"]
    return failed, seeds_seen


def try_mutation(mutation, tree, options):
    name, meaning, path, _, _ = mutation
    target = os.path.join(tree, path)
    with open(target, encoding="utf-8") as file:
        sound = file.read()
    with open(target, "w", encoding="utf-8") as file:
        file.write(mutated(options.source, mutation))
    built = build(tree, options.work, options.without)
    caught = False
    print(f"\n{name}: {meaning}", flush=True)
    if built.returncode != 0:
        print(built.stdout[-2000:])
    for binary in BINARIES if built.returncode == 0 else []:
        at = os.path.join(options.work, "build", binary)
        if not os.path.exists(at):
            continue
        failed, seen = run(at, options.seeds)
        caught = caught or bool(failed)
        shown = ", ".join(failed[:4]) + (f" and {len(failed) - 4} more" if len(failed) > 4 else "")
        shown += f"; seeds {', '.join(map(str, seen[:6]))}" if seen else ""
        print(f"    {os.path.basename(binary):18} {shown or '-'}", flush=True)
    with open(target, "w", encoding="utf-8") as file:
        file.write(sound)
    return "does not build" if built.returncode != 0 else "caught" if caught else "SURVIVES"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", default=os.path.dirname(os.path.dirname(HERE)))
    parser.add_argument("--work", default="/tmp/uib-mutations")
    parser.add_argument("--seeds", type=int, default=4000)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--without", nargs="*", default=[], help="components not to build, e.g. tests/conformance")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    lost = check(options.source)
    if options.check:
        return 1 if lost else 0
    tree = copy_tree(options.source, options.work)
    if build(tree, options.work, options.without).returncode != 0:
        print("the tree does not build")
        return 2
    results = {}
    for mutation in MUTATIONS:
        if mutation[0] not in lost and (not options.only or mutation[0] in options.only):
            results[mutation[0]] = try_mutation(mutation, tree, options)
    print("\n" + "\n".join(f"{name:32} {result}" for name, result in results.items()))
    if "does not build" in results.values():
        return 2
    return 1 if lost or "SURVIVES" in results.values() else 0


if __name__ == "__main__":
    sys.exit(main())
