#!/usr/bin/env python3
"""docs/write/effects.md as an author follows it: its files written and built against the installed SDK, its commands run."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import doc_page

PAGE = "docs/write/effects.md"


class EffectsPage(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="sluice-effects-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.work = os.path.join(self.folder, "work")
        self.environment = doc_page.install(self.folder)

    def test_its_handlers_work(self):
        commands = doc_page.write_files(PAGE, self.work)
        self.assertEqual(1, len(commands))
        done = doc_page.run(commands[0], self.work, self.environment)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        self.assertIn("one transaction in SQLite, 4 of at most 100 actions:", done.stdout)
        self.assertIn("ann|40\nbob|10\n", done.stdout)
        self.assertIn("ann paid 10", done.stdout.split("bob|10")[1])
        self.assertIn("debit", done.stdout.split("bob|10")[1])
        tested = subprocess.run([os.path.join(self.work, "build", "pay_test")], capture_output=True, text=True, check=False)
        self.assertEqual(0, tested.returncode, tested.stderr)


if __name__ == "__main__":
    unittest.main()
