#!/usr/bin/env python3
"""Runs clang-tidy over the sources that differ from a base commit, or over all of them. `./dev tidy` calls it.

A header that differs is looked at through its own source file, or through the first source that includes it. What was
found clean is remembered by the content of the source, of all it includes, of its command and of .clang-tidy, so that
the second run is quick.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from compile_commands import compiled_sources, included_by  # noqa: E402

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
TOOL = "clang-tidy-14"
SKIPPED = 77  # as ctest counts it
COMMITS_BACK = 10  # where no upstream tells what is new
FOLDERS = ("base", "bench", "client", "config", "dynamo", "host", "plugins", "sdk", "tests")


def git(*arguments):
    done = subprocess.run(("git", "-C", ROOT) + arguments, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def default_base():
    """Where this branch left the one it goes to; on that branch itself, some commits back."""
    head = git("rev-parse", "HEAD")
    for upstream in ("@{upstream}", "origin/HEAD"):
        base = git("merge-base", "HEAD", upstream)
        if base and base != head:
            return base
    history = (git("rev-list", "--first-parent", f"--max-count={COMMITS_BACK + 1}", "HEAD") or "").split()
    return history[-1] if history else None


def changed_files(base):
    """Paths that differ from `base`, committed or not; None when git cannot tell."""
    tracked = git("diff", "--name-only", "--diff-filter=d", base, "--")
    fresh = git("ls-files", "--others", "--exclude-standard")
    return None if tracked is None or fresh is None else sorted(set(tracked.split("\n") + fresh.split("\n")) - {""})


class Sources:
    """The sources that the build knows, by their path from the root."""

    def __init__(self, build):
        self.build = build
        self.commands = {}
        for path, entry in compiled_sources(build):
            if path.split(os.sep)[0] in FOLDERS and path.endswith(".cpp"):
                self.commands.setdefault(path, alone(path, entry))
        self.headers = {}  # of a source, and of those compiled with it, by the build's record; empty before the first build
        self.read_dependencies()
        self.write_commands()

    def write_commands(self):
        """For the tool, which looks at each source by itself."""
        os.makedirs(os.path.join(self.build, "tidy"), exist_ok=True)
        with open(os.path.join(self.build, "tidy", "compile_commands.json"), "w", encoding="utf-8") as file:
            json.dump([{"directory": self.build, "command": command, "file": os.path.join(ROOT, path)}
                       for path, command in self.commands.items()], file)

    def read_dependencies(self):
        records = subprocess.run(("ninja", "-C", self.build, "-t", "deps"), capture_output=True, text=True).stdout
        for record in records.split("\n\n"):
            files = [os.path.normpath(os.path.join(self.build, line.strip())) for line in record.split("\n")[1:]
                     if line.startswith("    ")]
            inside = [os.path.relpath(file, ROOT) for file in files if file.startswith(ROOT + os.sep)]
            for source in files and included_by(files[0]) or inside[:1]:
                if source in self.commands:
                    self.headers[source] = [name for name in inside if name != source]

    def touched_by(self, path):
        """The sources to look at for a file that differs."""
        if path in self.commands:
            return {path}
        if not path.endswith((".hpp", ".h")):
            return set()
        own = os.path.splitext(path)[0] + ".cpp"
        if own in self.commands:
            return {own}
        users = sorted(source for source, headers in self.headers.items() if path in headers)
        # By the record those that are compiled together include the same.
        return self.search_users(path, users) or set(users[:1]) or self.search_users(path, sorted(self.commands))

    @staticmethod
    def search_users(header, sources):
        name = re.escape(re.sub(r"^.*/include/", "", header))
        for source in sources:
            try:
                with open(os.path.join(ROOT, source), encoding="utf-8") as file:
                    if re.search(rf'#include ["<](.*/)?{name}[">]', file.read()):
                        return {source}
            except OSError:
                continue
        return set()

    def fingerprint(self, source):
        """Empty where the build has not recorded what the source includes."""
        if source not in self.headers:
            return ""
        digest = hashlib.sha256(self.commands[source].encode())
        for path in [".clang-tidy", source] + sorted(self.headers[source]):
            try:
                with open(os.path.join(ROOT, path), "rb") as file:
                    digest.update(path.encode() + b"\0" + file.read())
            except OSError:
                return ""
        return digest.hexdigest()


def alone(path, entry):
    """The command that compiles the source by itself."""
    words = shlex.split(entry["command"])
    return shlex.join(words[: words.index("-o")] + ["-c", os.path.join(ROOT, path)])


class Memory:
    """Which fingerprints were found clean: empty files under the build folder."""

    def __init__(self, build):
        self.folder = os.path.join(build, "tidy")
        os.makedirs(self.folder, exist_ok=True)

    def knows(self, fingerprint):
        return bool(fingerprint) and os.path.exists(os.path.join(self.folder, fingerprint))

    def keep(self, fingerprint):
        if fingerprint:
            with open(os.path.join(self.folder, fingerprint), "w", encoding="utf-8"):
                pass


def examine(build, source):
    """What clang-tidy finds in a source; empty when it is clean."""
    done = subprocess.run((TOOL, "-p", os.path.join(build, "tidy"), "--quiet", os.path.join(ROOT, source)), capture_output=True, text=True)
    if done.returncode == 0:
        return ""
    text = (done.stdout.strip() or done.stderr.strip()).replace(ROOT + os.sep, "")
    return text or f"{source}: {TOOL} ended with {done.returncode}"


def run(build, sources, wanted, seconds, jobs):
    memory = Memory(build)
    fingerprints = {source: sources.fingerprint(source) for source in wanted}
    waiting = [source for source in wanted if not memory.knows(fingerprints[source])]
    ends = time.monotonic() + seconds if seconds else None
    bad, left_out = 0, []

    def one(source):
        return None if ends and time.monotonic() > ends else examine(build, source)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for source, found in zip(waiting, pool.map(one, waiting)):
            if found is None:
                left_out.append(source)
            elif found:
                bad += 1
                print(found, flush=True)
            else:
                memory.keep(fingerprints[source])
    print(f"tidy: {len(wanted)} sources: {len(wanted) - len(waiting)} known to be clean, "
          f"{len(waiting) - len(left_out)} looked at, {bad} with findings")
    if left_out:
        print(f"tidy: no time left for {len(left_out)} of them, from {left_out[0]} on; `./dev tidy` looks at all of them")
    return 1 if bad else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "dev"), help="folder with compile_commands.json")
    parser.add_argument("--all", action="store_true", help="every source, or every one in the folders named")
    parser.add_argument("--seconds", type=int, default=0, help="begin no more sources after so long; 0: no limit")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("names", nargs="*", metavar="BASE|FOLDER", help="the commit to compare with; with --all: folders")
    options = parser.parse_args()
    if subprocess.run(("which", TOOL), capture_output=True).returncode != 0:
        print(f"tidy: {TOOL} is not installed; `./dev deps test` installs it on Debian 12")
        return SKIPPED
    sources = Sources(options.build)
    if options.all:
        folders = [name.rstrip("/") + "/" for name in options.names]
        wanted = sorted(path for path in sources.commands if not folders or path.startswith(tuple(folders)))
    else:
        base = options.names[0] if options.names else default_base()
        changed = changed_files(base) if base else None
        if changed is None:
            print(f"tidy: git cannot compare with {shlex.quote(base or 'a commit before')}; name a commit, or use --all")
            return SKIPPED if not options.names else 64
        wanted = sorted({source for path in changed for source in sources.touched_by(path)})
    return run(options.build, sources, wanted, options.seconds, options.jobs)


if __name__ == "__main__":
    sys.exit(main())
