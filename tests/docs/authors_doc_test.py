#!/usr/bin/env python3
"""The pages for authors of plugins: their files written, built against the installed SDK, and their commands run."""

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

HEADERS = os.path.join(support.SOURCE, "sdk", "include", "sluice")
CMAKE = os.environ.get("SLUICE_CMAKE", "cmake")


class AuthorsPages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.mkdtemp(prefix="sluice-authors-")
        cls.addClassCleanup(shutil.rmtree, cls.root, ignore_errors=True)
        prefix = os.path.join(cls.root, "prefix")
        for component in ("host", "sdk"):
            subprocess.run([CMAKE, "--install", support.BUILD, "--component", component, "--prefix", prefix], check=True, capture_output=True)
        cls.environment = {"PATH": f"{prefix}/bin:{os.environ['PATH']}", "HOME": cls.root, "CMAKE_PREFIX_PATH": prefix,
                           "PKG_CONFIG_PATH": f"{prefix}/share/pkgconfig"}

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

    @unittest.skipUnless(os.path.exists(os.path.join(HEADERS, "batch.hpp")), "SKIPPED: sluice.batch/1 is not here yet")
    def test_batch(self):
        shown = self.follow("batch")
        self.assertEqual(251, sum(int(size) for size in re.findall(r"(\d+) messages, sum", shown)), shown)
        self.assertIn("100 messages, sum 5050", shown)
        self.assertIn("this is no number", shown)

    @unittest.skipUnless(os.path.exists(os.path.join(HEADERS, "async.hpp")), "SKIPPED: sluice.async/1 is not here yet")
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
