#!/usr/bin/env python3
"""Long work with checkpoints, and hosts that are killed in the middle of it: each part is committed once."""

import json
import signal
import sqlite3

from support import Case, main, until

HALF = 10
STEPS = [f"part-{n}" for n in range(2 * HALF)]
BODY = "\n".join([*(f"commit {step}" for step in STEPS[:HALF]), "pause", *(f"commit {step}" for step in STEPS[HALF:])])


class CheckpointSqlite(Case):
    extra = ""

    def make_queues(self):
        self.sluice("send", "--queue", "receipts", "--id", "first", "--text", "1", "--create", check=True)
        self.sluice("delete", "first", "--queue", "receipts", check=True)
        with sqlite3.connect(self.path("sluice.db")) as file:
            file.execute("CREATE TABLE steps (step TEXT)")

    def check_rows(self):
        with sqlite3.connect(self.path("sluice.db")) as file:
            self.assertEqual(STEPS, [row[0] for row in file.execute("SELECT step FROM steps ORDER BY rowid")])

    def shown(self):
        return json.loads(self.sluice("get", "long", "--queue", "orders", "--json", check=True).stdout)

    def exported(self):
        lines = self.sluice("export", "--queue", "orders", check=True).stdout.splitlines()
        return json.loads(lines[-1])["checkpoint"]

    def begin(self, body):
        """A host that has come to the half of it, and waits."""
        self.make_queues()
        self.write_job("checkpoints", extra=self.extra)
        self.sluice("send", "--queue", "orders", "--id", "long", "--text", body, check=True)
        run = self.start()
        stored = f"{HALF} {STEPS[HALF - 1]}"
        until("half of it is done", lambda: self.shown().get("checkpoint_bytes") == len(stored))
        self.assertEqual(stored, self.exported())
        return run

    def test_what_a_killed_host_has_committed_is_not_done_again(self):
        self.write_host(visibility="2s")
        killed = self.begin(BODY)
        killed.kill(signal.SIGKILL)
        killed.wait()
        heir = self.start("--until-empty", report="heir.json")
        self.assertEqual(0, heir.wait(), heir.log())
        self.assertIn(f"last {HALF} {STEPS[HALF - 1]}", heir.log())
        self.assertEqual(0, self.stats()["total"])
        self.assertEqual(len(STEPS), self.stats("receipts")["total"])
        self.check_rows()

    def test_a_handler_that_is_asked_to_stop_stores_how_far_it_has_come(self):
        first = self.begin(BODY + "\nretry later")
        self.assertEqual(0, first.stop(), first.log())
        self.assertEqual(f"{2 * HALF + 1} {STEPS[-1]}", self.exported())
        self.check_rows()


class CheckpointProcess(CheckpointSqlite):
    extra = 'isolation = "process"'


class CheckpointDynamo(CheckpointSqlite):
    store = "dynamodb"

    def write_host(self, extra="", **words):
        super().write_host(extra + '[queues.receipts]\ntable = "receipts"\n', **words)

    def make_queues(self):
        self.sluice("table", "create", "--queue", "receipts", check=True)

    def check_rows(self):
        self.assertEqual(len(STEPS), self.stats("receipts")["total"])


if __name__ == "__main__":
    main()
