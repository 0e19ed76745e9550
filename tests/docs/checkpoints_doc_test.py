#!/usr/bin/env python3
"""docs/write/checkpoints.md: its handler is compiled with its test, which is run."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import doc_page
import support

PAGE = "docs/write/checkpoints.md"


class CheckpointsPage(unittest.TestCase):
    def test_its_handler_passes_its_test(self):
        folder = tempfile.mkdtemp(prefix="sluice-checkpoints-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        source, program = os.path.join(folder, "copy.cpp"), os.path.join(folder, "copy")
        blocks = [block.content for block in doc_page.blocks(PAGE) if block.language == "cpp"]
        self.assertEqual(2, len(blocks))
        with open(source, "w", encoding="utf-8") as file:
            file.write("\n".join(blocks))
        include = os.path.join(support.SOURCE, "sdk", "include")
        for command in ["c++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-I", include, "-o", program, source], [program]:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            self.assertEqual(0, done.returncode, done.stderr)


if __name__ == "__main__":
    unittest.main()
