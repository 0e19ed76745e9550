#!/usr/bin/env python3
"""Switches off one guard after the other and shows that tests notice. `./dev test guards` calls it.

The list is guards.txt, beside this file. Each test that it names must pass with the guard and fail without it.
"""

import argparse
import concurrent.futures
import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
E2E = os.path.join(HERE, "..", "e2e")
# Seconds. Whatever runs longer hangs, which counts as a failure: what a guard is for, where it is off.
PATIENCE_ON = 600
PATIENCE_OFF = 60
PATIENCE_OFF_E2E = "20"
SLACK_E2E = "3"
# The simulation finds what it is about among so many of its seeds.
SEEDS = "100"
E2E_TARGETS = ("sluice", "sluice_test_plugins", "dynamodb_model_server", "exec", "log", "webhook", "verify-file", "greeter")


@dataclasses.dataclass
class Test:
    """A filter of GoogleTest for an executable, or the test of a file in tests/e2e."""

    file: str
    name: str

    @property
    def is_e2e(self):
        return self.file.startswith("e2e/")

    @property
    def targets(self):
        return E2E_TARGETS if self.is_e2e else (self.file,)


@dataclasses.dataclass
class Guard:
    names: list
    tests: list
    protects: str

    @property
    def title(self):
        return "+".join(self.names)


def read_guards(text):
    guards = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = [field.strip() for field in line.split("|", maxsplit=2)]
        tests = [word.split(":", maxsplit=1) for word in fields[1].split()] if len(fields) == 3 else []
        if not tests or not fields[2] or any(len(test) != 2 for test in tests):
            raise ValueError(f"guards.txt, line {number}: write name | file:test ... | what it protects")
        guards.append(Guard(fields[0].split("+"), [Test(*test) for test in tests], fields[2]))
    return guards


def run(command, environment):
    """Its exit code and what it said; the code is None when it had to be ended, with all that it started."""
    patience = PATIENCE_OFF if environment["SLUICE_GUARDS_OFF"] else PATIENCE_ON
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment,
                               errors="replace", start_new_session=True)
    try:
        said, _ = process.communicate(timeout=patience)
        return process.returncode, said
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        return None, process.communicate()[0]


def run_unit(build, test, environment):
    """How each of the tests came out, by name: "passed", "failed" or "skipped". Those that never ended have failed."""
    program = os.path.join(build, "bin", test.file)
    listed = subprocess.run([program, "--gtest_list_tests", "--gtest_filter=" + test.name], capture_output=True,
                            text=True, env=environment, check=True).stdout
    suite, outcomes = "", {}
    for line in listed.split("\n"):
        name = line.split("#")[0].strip()
        if line.startswith("  ") and suite:
            outcomes[suite + name] = "failed"
        elif name.endswith("."):
            suite = name
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        run([program, "--gtest_filter=" + test.name, "--gtest_output=json:" + report], environment)
        with contextlib.suppress(FileNotFoundError, ValueError), open(report, encoding="utf-8") as file:
            for found in json.load(file)["testsuites"]:
                for case in found["testsuite"]:
                    skipped = case.get("result") == "SKIPPED"
                    outcomes[found["name"] + "." + case["name"]] = (
                        "skipped" if skipped else "failed" if case.get("failures") else "passed")
    return outcomes


def run_e2e(build, test, environment):
    script = os.path.join(E2E, test.file.removeprefix("e2e/") + ".py")
    code, said = run([sys.executable, script, "--failfast", test.name], dict(environment, SLUICE_BUILD_DIR=build))
    if "skipped=" in said:
        return {test.name: "skipped"}
    return {test.name: "passed" if code == 0 else "failed"}


def outcomes_of(build, guard, off):
    environment = dict(os.environ, SLUICE_GUARDS_OFF=",".join(off), SLUICE_SIM_SEEDS=SEEDS, SLUICE_TEST_SLACK=SLACK_E2E)
    if off:
        environment["SLUICE_TEST_PATIENCE"] = PATIENCE_OFF_E2E
    outcomes = {}
    for test in guard.tests:
        found = (run_e2e if test.is_e2e else run_unit)(build, test, environment)
        outcomes.update(found or {test.name: "missing"})
    return outcomes


def judge(build, guard):
    """Whether the guard is caught, and in a few words how it went."""
    for name, outcome in outcomes_of(build, guard, []).items():
        if outcome != "passed":
            return False, {"failed": "fails with the guard on: ", "skipped": "could not run: ",
                           "missing": "there is no "}[outcome] + name
    without = outcomes_of(build, guard, guard.names)
    blind = [name for name, outcome in without.items() if outcome != "failed"]
    if blind:
        return False, "NOT caught by " + ", ".join(blind)
    return True, f"caught by {len(without)} test{'s' if len(without) > 1 else ''}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", help="a build whose guards can be switched off")
    parser.add_argument("names", nargs="*", help="guards to look at; default: all")
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    with open(os.path.join(HERE, "guards.txt"), encoding="utf-8") as file:
        guards = read_guards(file.read())
    unknown = set(options.names) - {name for guard in guards for name in (guard.title, *guard.names)}
    if unknown:
        print(f"guards: there is no guard {', '.join(sorted(unknown))}")
        return 64
    wanted = [guard for guard in guards if not options.names or {guard.title, *guard.names} & set(options.names)]
    targets = sorted({target for guard in wanted for test in guard.tests for target in test.targets})
    built = subprocess.run(["ninja", "-C", build] + targets, capture_output=True, text=True)
    if built.returncode != 0:
        print(built.stdout[-4000:])
        return 1
    score = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for guard, (caught, how) in zip(wanted, pool.map(lambda guard: judge(build, guard), wanted)):
            score += caught
            print(f"{'ok  ' if caught else 'FAIL'} {guard.title:<32} {how:<20} {guard.protects}", flush=True)
    print(f"{score} of {len(wanted)} guards are caught when they are switched off")
    return 0 if score == len(wanted) else 1


if __name__ == "__main__":
    sys.exit(main())
