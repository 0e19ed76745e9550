#!/usr/bin/env python3
"""docs/write/debugging.md as an author follows it: its files written and built, its commands run, what they show compared."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import doc_page
import support

CMAKE = os.environ.get("SLUICE_CMAKE", "cmake")
PAGE = "docs/write/debugging.md"


class DebuggingPage(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="sluice-debugging-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        prefix, self.work = os.path.join(self.folder, "prefix"), os.path.join(self.folder, "work")
        os.mkdir(self.work)
        done = subprocess.run([CMAKE, "--install", support.BUILD, "--prefix", prefix], capture_output=True, text=True, check=False)
        self.assertEqual(0, done.returncode, done.stderr)
        self.environment = {"PATH": f"{prefix}/bin:{os.environ['PATH']}", "HOME": self.folder, "CMAKE_PREFIX_PATH": prefix,
                            "SLUICE_OUTPUT": "text"}

    def test_its_commands_show_what_it_says(self):
        shown = None
        compared = 0
        for block in doc_page.blocks(PAGE):
            named = re.match(r"^`([\w./]+)`$", block.before)
            if named:
                path = os.path.join(self.work, named.group(1))
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(block.content)
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
