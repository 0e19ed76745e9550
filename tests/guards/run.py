#!/usr/bin/env python3
"""Switches off one guard after the other and shows that a test notices. `./dev test guards` calls it.

The list is guards.txt, beside this file: name, targets to build, expression for ctest, what it protects. The tests of a
guard must pass with it and fail without it.
"""

import argparse
import dataclasses
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


@dataclasses.dataclass
class Guard:
    name: str
    targets: list
    tests: str
    protects: str


def read_guards(text):
    guards = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = [field.strip() for field in line.split("|", maxsplit=3)]
        if len(fields) != 4 or not all(fields):
            raise ValueError(f"guards.txt, line {number}: write name | targets | tests | what it protects")
        guards.append(Guard(fields[0], fields[1].split(), fields[2], fields[3]))
    return guards


def run_tests(build, guard, switched_off):
    """'passed', 'failed' or 'none' when no test has such a name."""
    environment = dict(os.environ, SLUICE_GUARDS_OFF=guard.name if switched_off else "")
    done = subprocess.run(("ctest", "--test-dir", build, "-R", guard.tests, "--no-tests=error", "--timeout", "120"),
                          capture_output=True, text=True, env=environment)
    if re.search(r"No tests were found|Not Run", done.stdout + done.stderr):
        return "none"
    return "passed" if done.returncode == 0 else "failed"


def judge(build, guard):
    """Whether the guard is caught, and in a few words how it went."""
    with_it = run_tests(build, guard, switched_off=False)
    if with_it != "passed":
        return False, "there is no such test" if with_it == "none" else "its tests fail with the guard on"
    without = run_tests(build, guard, switched_off=True)
    return without == "failed", "caught" if without == "failed" else "NOT caught: its tests pass without it"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", help="a build whose guards can be switched off")
    parser.add_argument("names", nargs="*", help="guards to look at; default: all")
    options = parser.parse_args()
    with open(os.path.join(HERE, "guards.txt"), encoding="utf-8") as file:
        guards = read_guards(file.read())
    unknown = set(options.names) - {guard.name for guard in guards}
    if unknown:
        print(f"guards: there is no guard {', '.join(sorted(unknown))}")
        return 64
    wanted = [guard for guard in guards if not options.names or guard.name in options.names]
    targets = sorted({target for guard in wanted for target in guard.targets})
    built = subprocess.run(["ninja", "-C", options.build] + targets, capture_output=True, text=True)
    if built.returncode != 0:
        print(built.stdout[-4000:])
        return 1
    score = 0
    for guard in wanted:
        caught, how = judge(options.build, guard)
        score += caught
        print(f"{'ok  ' if caught else 'FAIL'} {guard.name:<28} {how:<42} {guard.protects}", flush=True)
    print(f"{score} of {len(wanted)} guards are caught when they are switched off")
    return 0 if score == len(wanted) else 1


if __name__ == "__main__":
    sys.exit(main())
