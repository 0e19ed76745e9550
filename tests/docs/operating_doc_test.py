#!/usr/bin/env python3
"""Runs every command of docs/run/operating.md, in order, on a queue with a past and a host at work, on both stores."""

import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import doc_page
import support
from supervised import Supervised

PAGE = "docs/run/operating.md"


class OperatingSqlite(Supervised):
    def setUp(self):
        super().setUp()
        self.write_host(drain="3s", extra="[queues.copy]\n")
        if self.store == "dynamodb":
            self.sluice("table", "create", "--queue", "copy", check=True)
        self.orders_job(extra="concurrency = 4")
        os.symlink(os.path.abspath(support.SLUICE), self.path("sluice"))
        self.environment["PATH"] = f"{self.folder}:{self.environment['PATH']}"
        for n in range(1, 5):
            self.put(f"order-{n}", f"fine {n}", "--delay", "1h")
        for n in range(1, 8):
            self.put(f"order-refused-{n}", f"refused {n}")
        self.sluice("send", "--queue", "orders", "--id", "order-bad-1", "--data", '{"amount":-12}', check=True)
        self.put("order-slow", "slow 1")
        self.another = 0
        self.supervise()
        support.until("all have failed", lambda: self.dead() == 8)
        support.until("one is at work", lambda: "order-slow" in self.sluice("running").stdout)

    def put(self, name, text, *more):
        self.sluice("send", "--queue", "orders", "--id", name, "--text", text, *more, check=True)

    def fail_another(self):
        self.another += 1
        self.put(f"order-refused-again-{self.another}", "expired 1")

    def test_each_command_of_the_page(self):
        ran = 0
        for block in doc_page.blocks(PAGE):
            self.assertEqual("sh", block.language, f"line {block.line}: only commands, so that all of them are run")
            for offset, line in enumerate(block.content.splitlines(), 1):
                command = re.sub(r"(?:^|\s)#.*", "", line).strip()
                if command.startswith("sluice drain"):
                    # The rest is the next host's, which the supervisor starts.
                    self.expect_restart()
                endless = doc_page.ENDLESS.match(command)
                if endless:
                    done = doc_page.run_until_it_shows_something(command, self.folder, self.environment, self.fail_another)
                else:
                    done = doc_page.run(command, self.folder, self.environment)
                self.assertIn(done.returncode, (0, 130) if endless else (0,),
                              f"line {block.line + offset}: {command}\n{done.stdout}{done.stderr}\n{self.host_log()}")
                ran += 1
        self.assertGreater(ran, 35)
        support.until("those that were brought back have been worked on again", lambda: self.sluice(
            "get", "order-bad-1", "--queue", "orders").returncode != 0)

    def test_its_prose_names_no_command_that_is_not_there(self):
        known = self.sluice("help", check=True).stdout
        for command in set(re.findall(r"`sluice ([a-z]+(?:-[a-z]+)*)", doc_page.read(PAGE))) - {"help"}:
            self.assertRegex(known, rf"(?m)^  {command}\b")


class OperatingDynamo(OperatingSqlite):
    store = "dynamodb"
    test_its_prose_names_no_command_that_is_not_there = None


if __name__ == "__main__":
    unittest.main()
