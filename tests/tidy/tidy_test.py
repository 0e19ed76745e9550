#!/usr/bin/env python3
"""Holds the tree to its own rules, and each rule to a small tree that breaks it."""

import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import clang_tidy  # noqa: E402
import rules  # noqa: E402
import size  # noqa: E402

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))

# For each rule a tree that it must find fault with: files, and what the one line about them must hold.
PLANTED = (
    (rules.wrong_arrows, {"base/a.hpp": '#include "host/queue/message.hpp"\n'}, "base may not see host"),
    (rules.wrong_arrows, {"plugins/log/log.cpp": '#include "base/clock.hpp"\n'}, "plugins may not see base"),
    (rules.wrong_arrows, {"plugins/nats/a.cpp": '#include "dynamo/client.hpp"\n'}, "plugins may not see dynamo"),
    (rules.wrong_arrows, {"plugins/sns/a.cpp": '#include "dynamo/client.hpp"\n#include "host/a.hpp"\n'}, "plugins may not see host"),
    (rules.wrong_arrows, {"config/a.cpp": "#include <sluice/handler.hpp>\n"}, "config may not see sdk"),
    (rules.wrong_host_arrows, {"host/queue/a.hpp": '#include "host/work/job.hpp"\n'}, "host/work/job.hpp"),
    (rules.wrong_host_arrows, {"host/attic/a.hpp": "\n"}, "host/attic"),
    (rules.wrong_store_arrows, {"host/stores/leased/a.cpp": '#include "host/stores/dynamomq/record.hpp"\n'}, "dynamomq/record.hpp"),
    (rules.wrong_store_arrows, {"host/stores/dynamomq/a.cpp": '#include "host/stores/leased/turns.hpp"\n'}, "leased/turns.hpp"),
    (rules.wrong_store_arrows, {"host/stores/table/a.cpp": '#include "host/stores/dynamomq/record.hpp"\n'}, "dynamomq/record.hpp"),
    (rules.wrong_store_arrows, {"host/stores/leased/a.cpp": '#include "host/stores/dynamodb/table.hpp"\n'}, "dynamodb/table.hpp"),
    (rules.wrong_store_arrows, {"host/stores/membership.cpp": '#include "host/stores/leased/turns.hpp"\n'}, "leased/turns.hpp"),
    (rules.wrong_store_arrows, {"host/stores/attic/a.hpp": "\n"}, "host/stores/attic"),
    (rules.wrong_client_arrows, {"client/src/a.cpp": '#include "host/work/job.hpp"\n'}, "host/work/job.hpp"),
    (rules.wrong_client_arrows, {"host/work/a.cpp": "#include <sluice/client.hpp>\n"}, "sluice/client.hpp"),
    (rules.wrong_client_arrows, {"client/include/sluice/client/a.hpp": '#include "base/clock.hpp"\n'}, "base/clock.hpp"),
    (rules.strayed_third_party_headers, {"host/work/a.cpp": "#include <curl/curl.h>\n"}, "curl/curl.h"),
    (rules.banned_tokens, {"host/work/a.cpp": "\n/* one\n two */ std::thread t;\n"}, "host/work/a.cpp:3"),
    (rules.banned_tokens, {"host/work/a.cpp": 'const char* url = "http://a"; t.detach();\n'}, "detach("),
    (rules.banned_tokens, {"host/work/a.cpp": "using namespace std;\n"}, "using namespace"),
    (rules.banned_tokens, {"host/work/a.cpp": "const int k = 1'000; char c = '\"'; assert(c); // \"\n"}, "assert("),
    (rules.raw_locks, {"host/work/a.hpp": "std::shared_mutex mutex_;\n"}, "host/work/a.hpp"),
    (rules.god_files, {"host/work/a.cpp": "\n" * 901}, "901 lines"),
    (rules.overgrown_rooms, {"docs/understand/rooms.md": "| `base` | text | 1,000 |\n", "base/a.cpp": "\n" * 1001}, "gives it 1000"),
    (rules.overgrown_rooms, {"docs/understand/rooms.md": "| `host` | a | 10 |\n| `host/work` | b | 2 |\n", "host/a.cpp": "\n",
                             "host/work/a.cpp": "\n" * 3}, "host/work: 3 lines"),
    (rules.overgrown_rooms, {"docs/understand/rooms.md": "| `base` | text | 10 |\n", "base/a.cpp": "\n", "sdk/a.h": "\n"}, "sdk/a.h is in no room"),
    (rules.overgrown_rooms, {"docs/understand/rooms.md": "| `base` | text | 10 |\n"}, "is empty"),
    (rules.oversized_classes, {"host/work/a.hpp": "class A {\n public:\n" + "".join(f"  int f{i}() const {{ return 1; }}\n" for i in range(21)) + "};\n"},
     "A has 21 public methods"),
    (rules.oversized_classes, {"host/work/a.hpp": "class A {\n  void f();\n  void g();\n};\n", "host/work/a.cpp": "void A::f() {}\n",
                               "host/work/b.cpp": "void A::g() {}\n"}, "A is in several files"),
    (rules.deep_rooms, {"docs/understand/rooms.md": "| `host/work` | a | 100 |\n",
                        **{f"host/work/a{i}.hpp": f'#include "host/work/a{i + 1}.hpp"\n' for i in range(7)}, "host/work/a7.hpp": "\n"},
     "8 layers"),
    (rules.unguarded_headers, {"host/work/a.hpp": "// #pragma once\n"}, "host/work/a.hpp"),
    (rules.unknown_guards, {"base/a.cpp": "if (SLUICE_GUARD(one)) {}\n"}, "one is not in"),
    (rules.unknown_guards, {"tests/guards/guards.txt": "# names\none | a | b | c\n",
                            "base/guard.hpp": "#define SLUICE_GUARD(one) true\n"}, "one is nowhere"),
    (rules.unlisted_sources, {"base/CMakeLists.txt": "add_library(b STATIC job.cpp) # ob.cpp\n", "base/job.cpp": "",
                              "base/ob.cpp": ""}, "base/ob.cpp"),
    (rules.unlisted_sources, {"base/CMakeLists.txt": "add_library(b STATIC ../host/a.cpp)\n", "host/a.cpp": "",
                              "base/a.cpp": ""}, "base/a.cpp"),
)
# Trees that look like faults and are none.
HARMLESS = (
    (rules.banned_tokens, {"host/work/a.cpp": '// std::thread\nstd::thread::id id;\nauto s = "t.detach()";\n'
                                              'auto r = R"(assert(1))"; static_assert(true);\n'}),
    (rules.banned_tokens, {"tests/fixtures/plugins/a.cpp": "std::thread t;\n"}),
    (rules.wrong_store_arrows, {"host/stores/dynamodb/a.cpp": '#include "host/stores/leased/turns.hpp"\n',
                                "host/stores/leased/b.cpp": '#include "host/stores/membership.hpp"\n'
                                                            '#include "host/stores/table/times.hpp"\n'}),
    (rules.unlisted_sources, {"tests/a/CMakeLists.txt": "set(names one)\nadd_x(${name}.cpp)\nadd_y(two.cpp)\n",
                              "tests/a/one.cpp": "", "tests/a/two.cpp": ""}),
    (rules.unlisted_sources, {"tests/CMakeLists.txt": "f(${CMAKE_CURRENT_SOURCE_DIR}/a.cpp ${PROJECT_SOURCE_DIR}/base/b.c)\n",
                              "tests/a.cpp": "", "base/b.c": ""}),
    # Constructors, operators and what is private do not count; a call is no definition.
    (rules.oversized_classes, {"host/work/a.hpp": "class A {\n public:\n  A();\n  A& operator=(const A&);\n private:\n"
                                                  + "".join(f"  void f{i}();\n" for i in range(21)) + "};\n",
                               "host/work/a.cpp": "void A::f() {}\n", "host/work/b.cpp": "void g() {\n  A::f();\n}\n"}),
)
RULES = (rules.wrong_arrows, rules.wrong_host_arrows, rules.wrong_store_arrows, rules.wrong_client_arrows, rules.strayed_third_party_headers,
         rules.banned_tokens, rules.raw_locks, rules.god_files, rules.oversized_classes, rules.deep_rooms,
         rules.overgrown_rooms, rules.unguarded_headers,
         rules.unknown_guards, rules.unlisted_sources)


def plant(folder, texts):
    for path, text in texts.items():
        os.makedirs(os.path.join(folder, os.path.dirname(path)), exist_ok=True)
        with open(os.path.join(folder, path), "w", encoding="utf-8") as file:
            file.write(text)


class TheTree(unittest.TestCase):
    def test_keeps_every_rule(self):
        for rule in RULES:
            with self.subTest(rule.__name__):
                self.assertEqual([], list(rule(rules.Tree(ROOT))))


class EachRule(unittest.TestCase):
    def test_finds_what_breaks_it(self):
        for rule, texts, phrase in PLANTED:
            with self.subTest(rule.__name__, texts=texts), tempfile.TemporaryDirectory() as folder:
                plant(folder, texts)
                found = list(rule(rules.Tree(folder)))
                self.assertEqual(1, len(found), found)
                self.assertIn(phrase, found[0])
        self.assertEqual(set(RULES), {rule for rule, _, _ in PLANTED})

    def test_leaves_the_harmless_alone(self):
        for rule, texts in HARMLESS:
            with self.subTest(rule.__name__, texts=texts), tempfile.TemporaryDirectory() as folder:
                plant(folder, texts)
                self.assertEqual([], list(rule(rules.Tree(folder))))


class Size(unittest.TestCase):
    def test_counts_definitions_of_types(self):
        code = ("class A {\n};\nstruct B final : A {\n  enum class C : int { one };\n};\nclass D;\nstruct E e = {1};\n"
                "template <class T>\nstruct F {};\nstruct [[nodiscard]] G {};\n")
        self.assertEqual(5, len(size.TYPE.findall(code)))

    def test_a_file_is_in_the_innermost_room(self):
        self.assertEqual("host/work", rules.room_of("host/work/a.cpp", ["host", "host/work", "host/wo"]))
        self.assertEqual("host", rules.room_of("host/worker.cpp", ["host", "host/work"]))


class ChangedFiles(unittest.TestCase):
    """Which sources clang-tidy looks at for a file that differs."""

    def test_a_header_is_seen_through_a_source(self):
        sources = clang_tidy.Sources.__new__(clang_tidy.Sources)
        sources.commands = {"base/clock.cpp": "", "host/b.cpp": "", "host/a.cpp": ""}
        sources.headers = {"host/b.cpp": ["host/alone.hpp"], "host/a.cpp": ["host/alone.hpp", "base/clock.hpp"]}
        self.assertEqual({"host/a.cpp"}, sources.touched_by("host/a.cpp"))
        self.assertEqual({"base/clock.cpp"}, sources.touched_by("base/clock.hpp"))
        self.assertEqual({"host/a.cpp"}, sources.touched_by("host/alone.hpp"))
        self.assertEqual(set(), sources.touched_by("docs/write/abi.md"))

    def test_sources_that_are_compiled_together_are_looked_at_by_themselves(self):
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(os.path.join(folder, "Unity"))
            together = os.path.join(folder, "Unity", "unity_0_cxx.cxx")
            with open(together, "w", encoding="utf-8") as file:
                file.writelines(f'/* comment */\n#include "{os.path.join(clang_tidy.ROOT, name)}"\n' for name in ("base/a.cpp", "base/b.cpp"))
            with open(os.path.join(folder, "compile_commands.json"), "w", encoding="utf-8") as file:
                json.dump([{"directory": folder, "file": together, "command": f"c++ -Wall -o x.o -c {together}"},
                           {"directory": folder, "file": os.path.join(clang_tidy.ROOT, "base/c.cpp"), "command": "c++ -O1 -o c.o -c c.cpp"}], file)
            sources = clang_tidy.Sources(folder)
            self.assertEqual({f"base/{name}.cpp": f"c++ {option} -c {clang_tidy.ROOT}/base/{name}.cpp"
                              for name, option in (("a", "-Wall"), ("b", "-Wall"), ("c", "-O1"))}, sources.commands)

    def test_a_finding_fails_and_a_clean_source_is_remembered(self):
        with tempfile.TemporaryDirectory() as folder:
            looked = []
            clang_tidy.examine = lambda build, source: looked.append(source) or ("bad" if source == "b.cpp" else "")
            sources = clang_tidy.Sources.__new__(clang_tidy.Sources)
            sources.fingerprint = lambda source: source + "-1"
            self.assertEqual(1, clang_tidy.run(folder, sources, ["a.cpp", "b.cpp"], 0, 1))
            self.assertEqual(1, clang_tidy.run(folder, sources, ["a.cpp", "b.cpp"], 0, 1))
            self.assertEqual(["a.cpp", "b.cpp", "b.cpp"], looked)


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
