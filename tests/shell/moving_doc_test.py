#!/usr/bin/env python3
"""Runs docs/start/moving-from-dynamomq.md: its `sh` blocks in order, their output against the block behind each.

The expected block is `text` or `json`. A line that is only "…" stands for any lines, also none; within a line "…" stands
for any characters. Blocks of other languages are not run; those in C++ must be lines of the client library's example.
"""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import doc_page
import support

GUIDE = "docs/start/moving-from-dynamomq.md"
EXAMPLE = os.path.join(support.SOURCE, "client", "example", "orders.cpp")


def blocks():
    """Language, content and line number of each block."""
    return [(block.language, block.content, block.line) for block in doc_page.blocks(GUIDE)]


class Wildcards(unittest.TestCase):
    def test_they_mean_what_they_say(self):
        self.assertTrue(doc_page.pattern("a\n…\nb…d\n").fullmatch("a\nx\ny\nbccd\n"))
        self.assertTrue(doc_page.pattern("a\n…\n").fullmatch("a\n"))
        self.assertFalse(doc_page.pattern("a\n…\nb\n").fullmatch("a\nbc\n"))
        self.assertFalse(doc_page.pattern("a…\n").fullmatch("b\n"))


class Guide(unittest.TestCase):
    def setUp(self):
        case = support.Case()
        case.store = "dynamodb"
        case.setUp()
        self.addCleanup(case.doCleanups)
        self.folder = case.folder
        os.remove(case.path("host.toml"))
        tools, links = case.path("tools"), case.path(".local", "bin")
        os.makedirs(tools)
        os.makedirs(links)
        os.symlink(os.path.abspath(support.SLUICE), os.path.join(tools, "sluice"))
        self.environment = dict(case.environment, PATH=f"{links}:{tools}:{os.environ['PATH']}",
                                AWS_ENDPOINT_URL=case.emulator.endpoint)

    def test_its_commands_do_what_it_says(self):
        found = blocks()
        ran = 0
        for index, (language, script, line) in enumerate(found):
            if language != "sh":
                continue
            ran += 1
            done = doc_page.run(script, self.folder, self.environment)
            self.assertEqual(0, done.returncode, f"line {line}:\n{script}{done.stdout}{done.stderr}")
            follows = found[index + 1] if index + 1 < len(found) else ("", "", 0)
            if follows[0] in ("text", "json"):
                if not doc_page.pattern(follows[1]).fullmatch(done.stdout):
                    self.fail(f"line {line}:\n{script}printed\n{done.stdout}\nwhere the guide says\n{follows[1]}")
        self.assertGreater(ran, 20)

    def test_every_expected_output_follows_its_commands(self):
        found = blocks()
        for (before, _, _), (language, _, line) in zip([("", "", 0)] + found, found):
            if language in ("text", "json"):
                self.assertEqual("sh", before, f"line {line}")

    def test_its_cpp_is_the_examples(self):
        with open(EXAMPLE, encoding="utf-8") as file:
            example = [line.strip() for line in file]
        for language, content, line in blocks():
            if language == "cpp":
                for statement in content.splitlines():
                    self.assertIn(statement.strip(), example, f"line {line}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
