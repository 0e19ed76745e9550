#!/usr/bin/env python3
"""docs/write/batch.md and async.md: their handlers compile against the SDK and run as their pages say."""

import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import doc_page
import support
from support import Case


class KindsPages(Case):
    def plugins(self, page):
        """The page's handlers, built as plugins; their number."""
        count = 0
        for block in doc_page.blocks(page):
            if block.language == "cpp":
                count += 1
                source = self.path(f"plugin-{count}.cpp")
                self.write(source, block.content)
                built = subprocess.run([os.environ.get("CXX", "c++"), "-std=c++20", "-fPIC", "-shared", "-pthread",
                                        "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror",
                                        "-I", os.path.join(support.SOURCE, "sdk", "include"), source, "-o",
                                        self.path("plugins", f"plugin-{count}.so")], capture_output=True, text=True)
                self.assertEqual(0, built.returncode, f"{page}, line {block.line}: {built.stderr}")
        return count

    def work_off(self, *jobs):
        for name, text in jobs:
            self.write(f"jobs.d/{name}.toml", text)
        run = self.start("--until-empty")
        self.assertEqual(0, run.wait(), run.log())
        return run

    def test_batches(self):
        self.assertEqual(1, self.plugins("docs/write/batch.md"))
        job = [block.content for block in doc_page.blocks("docs/write/batch.md") if block.language == "toml"][0]
        self.write_host(extra="[queues.rows]\n")
        self.send(10, queue="rows")
        run = self.work_off(("rows", job))
        self.assertIn("imported with 9 others", run.log())
        self.assert_certificate(run, done=10)

    def test_asynchronous_handlers(self):
        self.assertEqual(2, self.plugins("docs/write/async.md"))
        self.write_host(extra="[queues.mails]\n[queues.others]\n")
        self.send(2)
        self.send(100, queue="others")
        run = self.work_off(("orders", '[job]\nqueue = "orders"\nhandler = "remind"\n'),
                            ("others", '[job]\nqueue = "others"\nhandler = "later"\nconcurrency = 2000\n'))
        self.assert_certificate(run, done=102)
        self.assertEqual(2, self.stats("mails")["ready"])


if __name__ == "__main__":
    unittest.main()
