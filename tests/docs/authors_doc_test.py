#!/usr/bin/env python3
"""The pages for authors of plugins: their files written, built against the installed SDK, and their commands run."""

import os
import re
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import doc_page


class AuthorsPages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.mkdtemp(prefix="sluice-authors-")
        cls.addClassCleanup(shutil.rmtree, cls.root, ignore_errors=True)
        cls.environment = doc_page.install(cls.root, "host", "sdk")
        cls.environment["PKG_CONFIG_PATH"] = cls.environment["CMAKE_PREFIX_PATH"] + "/share/pkgconfig"

    def follow(self, page):
        """What its commands print."""
        folder = os.path.join(self.root, page)
        os.mkdir(folder)
        shown = ""
        for commands in doc_page.write_files(f"docs/write/{page}.md", folder):
            done = doc_page.run(commands, folder, self.environment)
            self.assertEqual(0, done.returncode, f"{commands}{done.stdout}{done.stderr}")
            shown += done.stdout + done.stderr
        return shown

    def test_batch(self):
        shown = self.follow("batch")
        self.assertEqual(251, sum(int(size) for size in re.findall(r"(\d+) messages, sum", shown)), shown)
        self.assertIn("100 messages, sum 5050", shown)
        self.assertIn("this is no number", shown)

    def test_async(self):
        shown = self.follow("async")
        self.assertEqual(1000, shown.count("ready: "), shown[-2000:])
        self.assertIn("later 1.0.0", shown)

    def test_testing(self):
        self.assertEqual("", self.follow("testing"))

    def test_versioning(self):
        self.assertRegex(self.follow("versioning"), r"^meter 1\.4\.0 \(ABI 1\.")


if __name__ == "__main__":
    unittest.main()
