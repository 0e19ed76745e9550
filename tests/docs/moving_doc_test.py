#!/usr/bin/env python3
"""docs/run/moving-queues.md: its files are good, and its plan moves what it says."""

import json
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import doc_page
import support
from support import Case

PAGE = "docs/run/moving-queues.md"


class MovingPage(Case):
    def test_the_plan_works(self):
        self.write_job("log")
        os.symlink(os.path.abspath(support.SLUICE), self.path("sluice"))
        self.environment["PATH"] = f"{self.folder}:{self.environment['PATH']}"
        shown = []
        for block in doc_page.blocks(PAGE):
            if block.language == "toml":
                name = re.match(r"# ([\w./-]+\.toml)\n", block.content)
                self.assertTrue(name, f"line {block.line}: the block names its file")
                self.write(name.group(1), block.content)
                if name.group(1) != "host.toml":
                    done = self.sluice("check")
                    self.assertEqual(0, done.returncode, f"line {block.line}: {done.stdout}{done.stderr}")
                continue
            done = doc_page.run(block.content, self.folder, self.environment)
            self.assertEqual(0, done.returncode, f"line {block.line}: {done.stdout}{done.stderr}")
            shown.append(done.stdout)
        self.assertIn("would move 0", shown[0])
        self.assertIn('"moved": 1', shown[1])
        self.assertIn("0 moved", shown[2])
        stats = json.loads(self.sluice("stats", "--queue", "orders2", check=True).stdout)
        self.assertEqual(1, stats["ready"])


if __name__ == "__main__":
    unittest.main()
