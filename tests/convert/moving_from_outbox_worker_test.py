#!/usr/bin/env python3
"""Runs docs/start/moving-from-outbox-worker.md: its `sh` blocks in order, their output against the block behind each."""

import os
import shutil
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import doc_page
import support

GUIDE = "docs/start/moving-from-outbox-worker.md"


class Guide(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        case = support.Case()
        case.setUp()
        self.addCleanup(case.doCleanups)
        self.folder = case.folder
        os.remove(case.path("host.toml"))
        tools = case.path("tools")
        os.makedirs(tools)
        os.symlink(os.path.abspath(support.SLUICE), os.path.join(tools, "sluice"))
        self.environment = dict(case.environment, PATH=f"{tools}:{os.environ['PATH']}")

    def test_its_commands_do_what_it_says(self):
        found = doc_page.blocks(GUIDE)
        ran = 0
        for block, follows in zip(found, found[1:] + [None]):
            if block.language != "sh":
                self.assertIn(block.language, ("text", "json", "toml"), f"line {block.line}: a block that nobody runs")
                continue
            ran += 1
            done = doc_page.run(block.content, self.folder, self.environment)
            self.assertEqual(0, done.returncode, f"line {block.line}:\n{block.content}{done.stdout}{done.stderr}")
            if follows is not None and follows.language != "sh":
                if not doc_page.pattern(follows.content).fullmatch(done.stdout):
                    self.fail(f"line {block.line}:\n{block.content}printed\n{done.stdout}\nwhere the guide says\n{follows.content}")
        self.assertEqual(7, ran)
        self.check_converted()

    def check_converted(self):
        """What was written is a host file and a job that `sluice check` has nothing to say against."""
        plugins = os.path.join(self.folder, "sluice", "plugins")
        os.makedirs(plugins, exist_ok=True)
        shutil.copy(os.path.join(support.SHIPPED_PLUGINS, "nats.so"), plugins)
        done = doc_page.run("sluice check --config sluice/host.toml", self.folder,
                            dict(self.environment, DB_PASSWORD="geheim"))
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)

    def test_every_field_that_is_read_is_in_its_table(self):
        text = doc_page.read(GUIDE)
        for field in ("schema", "tableName", "producerName", "pollingInterval", "findEventLimit", "retryCount", "retryBackoff", "throughput", "uri",
                      "username", "password", "tls", "ssh", "maxOpenConn", "maxIdleConn", "maxLifeTimeSecond", "maxIdleSecond", "refetchTimer",
                      "accessKey", "secretKey", "region", "sns.endpoint", "ignoreFetchErrorResources", "clientName", "domain",
                      "maxReconnects", "reconnectJitterTLS", "userInfo", "userCredentials", "token", "rollbar", "sentry", "agentAddr", "serviceName"):
            self.assertIn(f"`{field}`", text.replace("sns.resources.", "").replace("`.", "`"), field)


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
