#!/usr/bin/env python3
"""An outcome that needs a stored state, park, is one file in core and one line in the SDK's two headers each: the patch is
applied to a copy, and what it touches is compiled and linked with everything else as it was built. No store is."""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from compile_commands import compiled_sources, included_by  # noqa: E402

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
PATCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "new_outcome.patch")
SKIPPED = 77

# The product's files that the patch may touch, with the statements that it adds to each, comments and names of braces apart.
PRODUCT = {"host/stores/core/outcomes.hpp": 3, "sdk/include/sluice/abi.h": 1, "sdk/include/sluice/outcome.hpp": 1}

# Programs: what of them is compiled against the patch, and which cases are played then. Nothing of a store is in it: what
# the drivers' libraries hold was compiled before.
CORE = ["host/stores/core/transitions.cpp"]
PROGRAMS = {
    "store_core_test": (CORE, "*"),
    "sqlite_contract_test": (CORE + ["tests/contract/settle_cases.cpp"], "*/StoreContract.*-*AnyHistory*"),
    "leased_contract_test": (CORE + ["tests/contract/settle_cases.cpp"], "*/StoreContract.*/Model-*AnyHistory*"),
    "dynamomq_contract_test": (CORE + ["tests/contract/settle_cases.cpp"], "*/StoreContract.*Parked*"),
    "work_test": (["host/work/in_flight_table.cpp", "tests/work/disposition_test.cpp"], "Disposition.*"),
    "plugin_test": (["host/plugin/handler_instance.cpp", "tests/plugin/call_test.cpp"], "ReadOutcome.*"),
}


def fail(text):
    sys.exit(f"new_outcome.patch: {text}")


def run(words, folder, **more):
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, **more)
    if done.returncode != 0:
        fail(f"{' '.join(words)[:400]}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


def statements(lines):
    """Added lines that say something: an entry of a table over several lines is one."""
    code = re.sub(r"\s*(//|/\*).*", "", "\n".join(lines), flags=re.M)
    return len(re.findall(r"[;}]\s*$|},\s*$|= \d+,", code, flags=re.M))


def touched():
    files = {}
    for line in open(PATCH, encoding="utf-8"):
        if line.startswith("+++ b/"):
            files[line[len("+++ b/"):].strip()] = lines = []
        elif line.startswith("+"):
            lines.append(line[1:].rstrip("\n"))
    return files


def check_size(files):
    product = {name: lines for name, lines in files.items() if not name.startswith("tests/")}
    if set(product) != set(PRODUCT):
        fail(f"it touches {sorted(product)}, and should touch {sorted(PRODUCT)}")
    for name, lines in product.items():
        if statements(lines) > PRODUCT[name]:
            fail(f"{name}: {statements(lines)} statements are added where {PRODUCT[name]} should do")


class Build:
    def __init__(self, folder, scratch):
        self.folder, self.scratch = folder, scratch
        self.commands = dict(compiled_sources(folder))
        self.objects = {}  # as the build has them, to those that are made here

    def compile(self, source):
        entry = self.commands[source]
        words = shlex.split(entry["command"])
        out = words.index("-o") + 1
        if words[out] not in self.objects:
            made = os.path.join(self.scratch, source.replace("/", "_") + ".o")
            self.objects[words[out]] = made
            words[out] = made
            words[words.index("-c") + 1] = self.patched(source, entry)
            # Before all others.
            words[1:1] = [f"-I{self.scratch}", f"-I{self.scratch}/sdk/include"]
            run(words, entry["directory"])

    def patched(self, source, entry):
        """What is compiled where `source` is: it, or a file that includes it and those that are compiled with it."""
        beside = included_by(os.path.join(entry["directory"], entry["file"])) or [source]
        files = [next(filter(os.path.exists, (os.path.join(folder, name) for folder in (self.scratch, ROOT))))
                 for name in beside]
        if len(beside) == 1:
            return files[0]
        path = os.path.join(self.scratch, source.replace("/", "_"))
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f'#include "{name}"\n' for name in files)
        return path

    def link(self, program):
        command = run(["ninja", "-t", "commands", f"bin/{program}"], self.folder).splitlines()[-1]
        words = shlex.split(command.split(" && ")[1])
        made = [self.objects.get(word, word) for word in words]
        # Those of libraries come before the libraries, which then are not asked for them.
        first = next(place for place, word in enumerate(made) if word.endswith(".o"))
        own = {object_ for object_, word in zip(made, words) if object_ != word}
        wanted = dict.fromkeys(self.objects[name] for name in map(self.object_of, PROGRAMS[program][0]))
        made[first:first] = [word for word in wanted if word not in own]
        path = os.path.join(self.scratch, program)
        made[made.index("-o") + 1] = path
        run(made, self.folder)
        return path

    def object_of(self, source):
        words = shlex.split(self.commands[source]["command"])
        return words[words.index("-o") + 1]


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--build", required=True)
    build_folder = os.path.abspath(arguments.parse_args().build)
    files = touched()
    check_size(files)
    run(["git", "apply", "--check", PATCH], ROOT)
    if shutil.which("ninja") is None or not os.path.exists(os.path.join(build_folder, "build.ninja")):
        print("NOT TESTED: whether it compiles, for the build is none of ninja's")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory(prefix="sluice-exercise-") as scratch:
        for name in files:
            os.makedirs(os.path.join(scratch, os.path.dirname(name)), exist_ok=True)
            shutil.copy(os.path.join(ROOT, name), os.path.join(scratch, name))
        run(["git", "apply", PATCH], scratch, env={**os.environ, "GIT_CEILING_DIRECTORIES": os.path.dirname(scratch)})
        build = Build(build_folder, scratch)
        for sources, _ in PROGRAMS.values():
            for source in sources:
                build.compile(source)
        for program, (_, cases) in PROGRAMS.items():
            said = run([build.link(program), f"--gtest_filter={cases}"], build_folder)
            print(program + ": " + ", ".join(re.findall(r"\[  (?:PASSED|SKIPPED) +\] (.*?)[.,]", said)))


if __name__ == "__main__":
    main()
