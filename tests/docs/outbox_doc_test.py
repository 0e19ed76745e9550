#!/usr/bin/env python3
"""docs/run/outbox.md as its readers follow it: its files are good, every key of its tables is read with what stands there as its
default, and its commands are those of the help."""

import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import doc_page
from support import Case

PAGE = "docs/run/outbox.md"
# What is no default, or depends on the machine.
GIVEN = {"kind": '"postgres"', "url": '"postgres://relay:secret@db.internal:5432/shop"', "username": '"relay"', "password": '"secret"',
         "schema": '"events"', "table": '"outbox"', "producer": '"shop"', "compat": '"outbox-worker"', "attributes": '["traceparent"]',
         "lag_limit": '"5m"'}


def table(heading):
    """{key: default} of the table whose first column is headed so."""
    text = doc_page.read(PAGE).partition(f"| {heading} |")[2].partition("\n\n")[0]
    found = {}
    for names, default in re.findall(r"^\| (`.*?) \| (.*?) \|", text, re.M):
        for name in re.findall(r"`([^`\[]+)`", names):
            value = re.match(r"`([^`]+)`|(\d+)", default)
            found[name] = GIVEN.get(name) or (value and (value[1] or value[2]))
    return found


class OutboxPage(Case):
    def setUp(self):
        super().setUp()
        self.write_job("queue")
        self.write_job("log")
        os.remove(self.path("jobs.d", "orders.toml"))
        self.environment["DB_PASSWORD"] = "geheim"

    def check(self):
        done = self.sluice("check")
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        return done.stdout

    def test_its_files_are_good_and_its_command_prints_the_table(self):
        for block in doc_page.blocks(PAGE):
            if block.language == "toml":
                for name, content in re.findall(r"^# (\S+\.toml)\n(.*?)(?=^# \S+\.toml$|\Z)", block.content, re.M | re.S):
                    self.write(name, content)
                self.check()
        printed = self.sluice("outbox", "ddl", "orders", check=True).stdout
        self.assertIn('CREATE TABLE IF NOT EXISTS "outbox"', printed)
        self.assertNotIn("sluice (", printed)
        self.assertNotIn("geheim", printed)

    def test_every_key_is_read(self):
        keys = table("key of `[outbox.NAME]`")
        self.assertGreater(len(keys), 14, keys)
        lines = "".join(f"{key} = {value}\n" for key, value in keys.items() if value)
        self.assertIn('coordination = "locks"', lines)
        columns = "".join(f'{name} = "{name}"\n' for name in ("id", "aggregate_type", "aggregate_id", "event", "payload",
                                                               "retry_at", "retry_count", "sent_at", "created_at", "last_error", "failed_at"))
        self.write("jobs.d/relay.toml", '[job]\nsource = "outbox:orders"\nhandler = "log"\n[job.outbox]\ntypes = ["a"]\n'
                   'deny_types = ["b"]\nevents = ["c"]\nskip_events = ["d"]\n')
        self.write("host.toml", f"[outbox.orders]\n{lines}[outbox.orders.columns]\n{columns}")
        self.check()

    def test_a_table_of_another_maker_is_named_as_its_page_has_it(self):
        page = "docs/run/outbox-tables.md"
        (files,) = [block for block in doc_page.blocks(page) if block.language == "toml"]
        for name, content in re.findall(r"^# (\S+\.toml)\n(.*?)(?=^# \S+\.toml$|\Z)", files.content, re.M | re.S):
            self.write(name, content)
        self.check()
        printed = self.sluice("outbox", "ddl", "orders", "--in-use", check=True).stdout
        self.assertIn('CREATE INDEX CONCURRENTLY IF NOT EXISTS "outboxevent_pending" ON "outboxevent" ("position")', printed)

    def test_the_side_table_is_printed_where_it_is_wanted(self):
        self.write("jobs.d/relay.toml", '[job]\nsource = "outbox:orders"\nhandler = "log"\n')
        for kind, name in (("postgres", '"outbox_sluice"'), ("mysql", "`outbox_sluice`")):
            self.write("host.toml", f'[outbox.orders]\nkind = "{kind}"\nurl = "{kind}://u:p@db/shop"\ncoordination = "table"\n')
            self.check()
            self.assertIn(name, self.sluice("outbox", "ddl", "orders", check=True).stdout)

    def test_each_command_that_takes_an_outbox_says_so(self):
        for command in ("ls", "get", "stats", "dlq", "redrive", "export", "delay", "reset", "invalid", "delete", "cancel", "purge"):
            self.assertIn("--outbox NAME", self.sluice("help", command, check=True).stdout, command)
        for command in ("ddl", "status", "prune"):
            self.assertIn("--outbox NAME", self.sluice("help", "outbox", command, check=True).stdout, command)


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
