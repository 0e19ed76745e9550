#!/usr/bin/env python3
"""docs/write/groups.md: its job files are good, its commands work, and groups come in their order."""

import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import doc_page
import support
from support import Case

PAGE = "docs/write/groups.md"


class GroupsPage(Case):
    def setUp(self):
        super().setUp()
        self.write_job("log")
        os.remove(self.path("jobs.d/orders.toml"))
        self.write_host(extra="[queues.mails]\n")
        os.symlink(os.path.abspath(support.SLUICE), self.path("sluice"))
        self.environment["PATH"] = f"{self.folder}:{self.environment['PATH']}"

    def test_each_job_file_and_command(self):
        seen = set()
        for block in doc_page.blocks(PAGE):
            seen.add(block.language)
            if block.language == "toml":
                name = re.match(r"# (jobs\.d/[\w-]+\.toml)\n", block.content)
                self.assertTrue(name, f"line {block.line}: the block names its file")
                self.write(name.group(1), block.content)
                done = self.sluice("check")
                self.assertEqual(0, done.returncode, f"line {block.line}: {done.stdout}{done.stderr}")
                os.remove(self.path(name.group(1)))
            else:
                done = doc_page.run(block.content, self.folder, self.environment)
                self.assertEqual(0, done.returncode, f"line {block.line}: {done.stdout}{done.stderr}")
        self.assertEqual({"toml", "sh"}, seen)

    def test_groups_come_in_their_order(self):
        for n in range(30):
            self.sluice("send", "--queue", "orders", "--group", f"g{n % 3}", "--text", f"g{n % 3} {n:02}", check=True)
        self.write("jobs.d/ordered.toml", '[job]\nqueue = "orders"\nhandler = "log"\norder = "group"\nconcurrency = 8\n')
        done = self.sluice("run", "--until-empty")
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        bodies = re.findall(r"(g\d) (\d\d)", done.stdout + done.stderr)
        for group in ("g0", "g1", "g2"):
            numbers = [number for name, number in bodies if name == group]
            self.assertEqual(sorted(numbers), numbers, done.stdout + done.stderr)
            self.assertEqual(10, len(set(numbers)), done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
