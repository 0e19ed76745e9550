#!/usr/bin/env python3
"""Idempotency keys: of the messages with one key the handler sees one, whatever dies; on both stores."""

import json
import signal

from support import Case, main, until

KEYED = '[job.idempotency]\nkey = "attribute:order"\n'


class IdempotencySqlite(Case):
    def keyed_job(self, section=KEYED, extra="", sleep=""):
        options = f'path = "{self.path("worked")}"\n' + (f'sleep = "{sleep}"\n' if sleep else "")
        self.write_job("counts", options=options, extra=extra + "\n" + section)

    def send_keyed(self, message, order):
        attribute = ("--attr", "order=" + order) if order is not None else ()
        self.sluice("send", "--queue", "orders", "--id", message, "--data", "1", *attribute, check=True)

    def keys(self, *words):
        return json.loads(self.sluice("keys", "list", "orders", *words, check=True).stdout)["keys"]

    def worked_off(self):
        """The host has nothing left to do, and has ended cleanly."""
        run = self.start()
        until("the queue is empty", lambda: self.stats()["total"] == 0)
        self.assertEqual(0, run.stop(), run.log())
        return run

    def test_of_the_messages_with_one_key_one_is_run(self):
        self.keyed_job(extra="concurrency = 4", sleep="100ms")
        for message, order in (("a1", "a"), ("a2", "a"), ("b1", "b"), ("a3", "a"), ("b2", "b")):
            self.send_keyed(message, order)
        run = self.worked_off()
        self.assertEqual(["a", "b"], sorted(message[0] for message in self.lines("worked")), run.log())
        self.assert_certificate(run, done=2, discarded=3)
        self.assertEqual([("a", "done"), ("b", "done")], sorted((key["key"], key["state"]) for key in self.keys()))
        self.send_keyed("a4", "a")
        self.assert_certificate(self.worked_off(), done=0, discarded=1)
        self.assertEqual(2, len(self.lines("worked")))

    def test_each_queue_of_a_job_has_its_own_keys(self):
        self.write_host("[queues.bulk]\n")
        if self.store == "dynamodb":
            self.sluice("table", "create", "--queue", "bulk", check=True)
        self.keyed_job()
        self.write("jobs.d/orders.toml", self.read_job().replace('queue = "orders"', 'queues = ["orders:2", "bulk:1"]'))
        for queue, message in (("orders", "a1"), ("bulk", "b1"), ("orders", "a2"), ("bulk", "b2")):
            self.sluice("send", "--queue", queue, "--id", message, "--data", "1", "--attr", "order=7", "--create",
                        check=True)
        run = self.start()
        for queue in ("orders", "bulk"):
            until("the queue is empty", lambda queue=queue: self.stats(queue)["total"] == 0)
        self.assertEqual(0, run.stop(), run.log())
        self.assertEqual(["a", "b"], sorted(message[0] for message in self.lines("worked")), run.log())
        self.assert_certificate(run, done=2, discarded=2)
        for queue in ("orders", "bulk"):
            kept = json.loads(self.sluice("keys", "list", queue, check=True).stdout)["keys"]
            self.assertEqual([("7", "done")], [(key["key"], key["state"]) for key in kept], queue)

    def read_job(self):
        with open(self.path("jobs.d/orders.toml"), encoding="utf-8") as file:
            return file.read()

    def test_a_message_that_is_sent_again_under_its_id_is_not_run_again(self):
        self.keyed_job('[job.idempotency]\nkey = "message"\n')
        for _ in range(2):
            self.send_keyed("once", None)
            self.worked_off()
        self.assertEqual(["once"], self.lines("worked"))

    def test_a_kill_in_the_middle_runs_it_again_and_its_duplicate_not(self):
        self.write_host(visibility="2s")
        self.write_job("sleeper", options='duration = "1h"', extra="concurrency = 2\n" + KEYED)
        self.send_keyed("first", "a")
        run = self.start()
        until("it is being worked on", lambda: [key["state"] for key in self.keys()] == ["running"])
        self.send_keyed("second", "a")
        until("the second one waits", lambda: "it waits" in run.log())
        run.kill(signal.SIGKILL)
        run.wait()
        self.keyed_job(extra="concurrency = 2")
        heir = self.worked_off()
        self.assertEqual(1, len(self.lines("worked")), heir.log())
        self.assertEqual(["done"], [key["state"] for key in self.keys()])

    def test_a_message_without_a_key_is_rejected_with_the_reason(self):
        self.keyed_job()
        self.send_keyed("keyless", None)
        run = self.start()
        until("it is a dead letter", lambda: self.stats()["dlq"] == 1)
        self.assertEqual(0, run.stop(), run.log())
        shown = json.loads(self.sluice("get", "--queue", "orders", "--id", "keyless", check=True).stdout)
        self.assertIn("no attribute 'order'", json.dumps(shown))
        self.assertEqual([], self.lines("worked"))

    def test_a_key_can_be_looked_at_and_forgotten(self):
        self.keyed_job()
        self.send_keyed("a1", "a")
        self.worked_off()
        shown = json.loads(self.sluice("keys", "show", "a", "--job", "orders", "--queue", "orders", check=True).stdout)
        self.assertEqual(("orders", "a", "done", "a1"), tuple(shown[name] for name in ("job", "key", "state", "message")))
        self.assertEqual([], self.keys("--job", "another"))
        refused = self.sluice("keys", "forget", "a", "--job", "orders", "--queue", "orders")
        self.assertEqual(64, refused.returncode)
        self.assert_one_line(refused.stderr, "--yes")
        self.sluice("keys", "forget", "a", "--job", "orders", "--queue", "orders", "--yes", check=True)
        again = self.sluice("keys", "forget", "a", "--job", "orders", "--queue", "orders", "--yes")
        self.assertEqual(1, again.returncode)
        self.assert_one_line(again.stderr, "no such key", "keys list")
        self.send_keyed("a2", "a")
        self.worked_off()
        self.assertEqual(["a1", "a2"], self.lines("worked"))


class IdempotencyDynamo(IdempotencySqlite):
    store = "dynamodb"


if __name__ == "__main__":
    main()
