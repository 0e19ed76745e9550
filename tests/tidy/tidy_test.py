#!/usr/bin/env python3
"""Holds the tree to its own rules: include arrows, boundary headers, banned tokens, sizes, every source listed."""

import os
import re
import sys
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
SOURCE_FOLDERS = ("base", "sdk", "config", "dynamo", "host", "client", "plugins")
ALL_FOLDERS = SOURCE_FOLDERS + ("tests", "bench")

# Who may include whom. sdk is reached as <sluice/...>, the client's public headers as <sluice/client...>; everything else by
# its path from the root.
ARROWS = {
    "base": set(),
    "sdk": {"sdk"},
    "config": set(),
    "dynamo": {"base"},
    "host": {"base", "config", "dynamo", "sdk", "client"},
    "client": {"base", "dynamo", "host"},
    "plugins": {"sdk"},
}

# Inside host: what each sub-folder may see of the others.
HOST_ARROWS = {
    "queue": set(),
    "stores": {"queue"},
    "observe": {"runtime/service.hpp"},
    "operate": {"queue", "observe"},
    "plugin": {"queue"},
    "isolation": {"queue", "plugin", "runtime/service.hpp"},
    "work": {"queue", "plugin", "isolation", "observe", "runtime/service.hpp"},
    "runtime": {"queue", "stores", "plugin", "isolation", "observe", "work"},
    "cli": {"queue", "stores", "operate", "plugin", "isolation", "observe", "work", "runtime"},
}

# A third-party header and the one place that may include it (path prefixes).
BOUNDARIES = {
    r"curl/": ("dynamo/transport/", "plugins/webhook/"),
    r"openssl/": ("dynamo/signing/", "dynamo/credentials/", "plugins/"),
    r"toml\+\+/|toml\.hpp": ("config/",),
    r"boost/dll": ("host/plugin/",),
    r"sqlite3\.h": ("host/stores/sqlite/",),
    r"spdlog/|fmt/": ("host/observe/",),
    r"prometheus/": ("host/observe/",),
    r"httplib\.h": ("host/observe/",),
    r"boost/program_options": ("host/cli/",),
    r"histedit\.h": ("host/cli/shell/edited_lines.cpp",),
}

BANNED = {
    r"\bdetach\(": "a detached thread has no owner",
    r"\bsleep_for\b|\bsleep_until\b|\busleep\(|\bnanosleep\(": "wait on a condition or step a clock",
    r"\bstd::endl\b": "use '\\n'",
    r"\busing namespace\b": "name what is used",
    r"\bstd::async\b": "use a Service",
    r"\bstd::thread\b(?!::)": "use std::jthread",
    r"\bassert\(": "use SLUICE_ASSERT",
}
MAX_FILE_LINES = {"product": 400, "tests": 600}


def files(folders, suffixes):
    for folder in folders:
        for path, dirs, names in os.walk(os.path.join(ROOT, folder)):
            dirs[:] = [d for d in dirs if d not in ("build", "abi-history", "corpus")]
            for name in names:
                if name.endswith(suffixes):
                    yield os.path.relpath(os.path.join(path, name), ROOT)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def without_comments(text):
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return re.sub(r"//[^\n]*", "", text)


def includes(path):
    return re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', read(path), flags=re.M)


def folder_of(include):
    if include == "sluice/client.hpp" or include.startswith("sluice/client/"):
        return "client"
    if include.startswith("sluice/"):
        return "sdk"
    head = include.split("/")[0]
    return head if head in ALL_FOLDERS else None


class Arrows(unittest.TestCase):
    def test_folders_include_only_what_their_arrows_allow(self):
        wrong = []
        for path in files(SOURCE_FOLDERS, (".cpp", ".hpp", ".h", ".c")):
            own = path.split(os.sep)[0]
            if "/template/" in path:
                continue
            for include in includes(path):
                target = folder_of(include)
                if target and target != own and target not in ARROWS[own]:
                    wrong.append(f"{path} includes {include}: {own} may not see {target}")
        self.assertEqual([], wrong)

    def test_host_sub_folders_keep_their_order(self):
        wrong = []
        for path in files(("host",), (".cpp", ".hpp")):
            parts = path.split(os.sep)
            if len(parts) < 3:
                continue
            for include in includes(path):
                if not include.startswith("host/"):
                    continue
                rest = include[len("host/"):]
                target = rest.split("/")[0]
                allowed = HOST_ARROWS[parts[1]]
                if target != parts[1] and target not in allowed and rest not in allowed:
                    wrong.append(f"{path} includes {include}")
        self.assertEqual([], wrong)

    def test_the_client_sees_the_queues_of_the_host_and_the_host_its_public_headers(self):
        wrong = [f"{path} includes {include}" for path in files(("client",), (".cpp", ".hpp")) for include in includes(path)
                 if include.startswith("host/") and not include.startswith(("host/queue/", "host/stores/"))]
        wrong += [f"{path} includes {include}" for path in files(("host",), (".cpp", ".hpp")) for include in includes(path)
                  if folder_of(include) == "client" and not (include.startswith("sluice/") and path.startswith("host/cli/"))]
        wrong += [f"{path} includes {include}" for path in files(("client/include",), (".hpp",)) for include in includes(path)
                  if "/" in include and not include.startswith("sluice/client/")]
        self.assertEqual([], wrong)

    def test_third_party_headers_stay_in_their_boundary(self):
        wrong = []
        for path in files(SOURCE_FOLDERS, (".cpp", ".hpp", ".h")):
            for include in includes(path):
                for pattern, places in BOUNDARIES.items():
                    if re.match(pattern, include) and not path.startswith(places):
                        wrong.append(f"{path} includes {include}; only {', '.join(places)} may")
        self.assertEqual([], wrong)


class Tokens(unittest.TestCase):
    def test_no_banned_tokens(self):
        wrong = []
        for path in files(ALL_FOLDERS, (".cpp", ".hpp")):
            text = without_comments(read(path))
            for pattern, why in BANNED.items():
                for match in re.finditer(pattern, text):
                    # The SDK's users may be on any thread; a fixture plugin misbehaves on purpose.
                    if path.startswith("tests/fixtures/"):
                        continue
                    # A test may open the namespace that it is all about; product code names what it uses.
                    if match.group(0) == "using namespace" and path.startswith(("tests/", "bench/")):
                        continue
                    if "static_assert(" in text[max(0, match.start() - 8):match.end()]:
                        continue
                    line = text.count("\n", 0, match.start()) + 1
                    wrong.append(f"{path}: {match.group(0)} near line {line}: {why}")
        self.assertEqual([], wrong)

    def test_no_raw_mutex_outside_its_file(self):
        wrong = [path for path in files(("base", "config", "dynamo", "host", "client"), (".cpp", ".hpp"))
                 if path != os.path.join("base", "mutex.hpp")
                 and re.search(r"\bstd::(mutex|lock_guard|unique_lock|scoped_lock)\b", without_comments(read(path)))]
        self.assertEqual([], wrong)


class Shape(unittest.TestCase):
    def test_no_god_files(self):
        wrong = []
        for path in files(ALL_FOLDERS, (".cpp", ".hpp", ".h", ".py")):
            limit = MAX_FILE_LINES["tests" if path.startswith(("tests", "bench")) else "product"]
            lines = read(path).count("\n")
            if lines > limit:
                wrong.append(f"{path}: {lines} lines, limit {limit}")
        self.assertEqual([], wrong)

    def test_every_source_is_listed_in_cmake(self):
        listed = ""
        for path in files(ALL_FOLDERS, ("CMakeLists.txt", ".cmake")):
            listed += read(path)
        wrong = [path for path in files(ALL_FOLDERS, (".cpp", ".c"))
                 if os.path.basename(path) not in listed and os.path.splitext(os.path.basename(path))[0] not in listed]
        self.assertEqual([], wrong)

    def test_headers_have_a_guard(self):
        wrong = [path for path in files(SOURCE_FOLDERS, (".hpp",)) if "#pragma once" not in read(path)]
        self.assertEqual([], wrong)


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
