#!/usr/bin/env python3
"""docs/write/debugging.md as an author follows it: its files written and built, its commands run, what they show compared."""

import os
import re
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import doc_page

PAGE = "docs/write/debugging.md"


class DebuggingPage(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="sluice-debugging-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.work = os.path.join(self.folder, "work")
        os.mkdir(self.work)
        self.environment = {**doc_page.install(self.folder), "SLUICE_OUTPUT": "text"}

    def test_its_commands_show_what_it_says(self):
        shown = None
        compared = 0
        for block in doc_page.blocks(PAGE):
            named = re.match(r"^`([\w./]+)`$", block.before)
            if named:
                doc_page.write_file(self.work, named.group(1), block.content)
            elif block.language == "sh":
                done = doc_page.run(block.content, self.work, self.environment)
                self.assertEqual(0, done.returncode, f"line {block.line}: {done.stdout}{done.stderr}")
                shown = done.stdout
            elif not block.content.startswith("$ "):  # A dialogue with gdb is a person's.
                self.assertEqual("text", block.language, f"line {block.line}")
                self.assertRegex(shown, re.compile(r"\A" + doc_page.pattern(block.content).pattern + r"\Z"), f"line {block.line}")
                compared += 1
        self.assertEqual(5, compared)


if __name__ == "__main__":
    unittest.main()
