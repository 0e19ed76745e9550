#!/usr/bin/env python3
"""Three in the morning: 3,000 dead letters of four causes. With nothing but the commands of docs/run/operating.md an operator
finds the causes, pauses the job, mends one, brings its messages back at 50 a second while he watches, resumes, finds a stuck handler
and restarts its host."""

import json
import re
import subprocess
import time

from support import SLUICE, main, until
from supervised import Supervised

CAUSES = {"refused": 300, "expired": 1500, "missing": 1000, "negative": 200}
RATE = 50


class OperatingSqlite(Supervised):
    def setUp(self):
        super().setUp()
        self.write_host(drain="3s")
        self.orders_job(extra='concurrency = 8\ntimeout = "1s"\n[job.retry]\nmax_attempts = 1')
        bodies = [json.dumps(f"{cause} {n}") for cause, count in CAUSES.items() if cause != "negative" for n in range(count)]
        bodies += [json.dumps({"amount": -1 - n}) for n in range(CAUSES["negative"])]
        self.assertEqual(3000, len(bodies))
        self.sluice("send", "--queue", "orders", "-", data="\n".join(bodies) + "\n", check=True)
        self.supervise()
        until("all of them have failed", lambda: self.dead() == 3000, patience=300)

    def json(self, *words):
        return json.loads(self.sluice(*words, "--output", "json", check=True).stdout)

    def causes(self):
        return {cause["count"]: cause for cause in self.json("dlq", "--queue", "orders")["dlq_errors"]}

    def done(self):
        return len(self.lines("done"))

    def job(self):
        return next(job for job in self.json("jobs") if job["job"] == "orders")

    def test_an_operator_at_three_in_the_morning(self):
        fingerprint = self.find_the_causes()
        self.pause()
        self.write("database", "it is back\n")
        self.bring_back(fingerprint)
        self.resume()
        self.restart_the_host_of_a_stuck_handler()

    def find_the_causes(self):
        causes = self.causes()
        self.assertEqual(set(CAUSES.values()), set(causes), causes)
        refused = causes[CAUSES["refused"]]
        self.assertIn("connection refused", refused["error"])
        self.assertEqual({"orders": CAUSES["refused"]}, refused["handlers"])
        one = self.json("get", "--queue", "orders", "--id", refused["example_id"])
        self.assertIn("connection refused", json.dumps(one))
        text = self.sluice("dlq", "--queue", "orders", "--output", "text", check=True).stdout
        for cause in causes.values():
            self.assertIn(cause["fingerprint"], text)
        return refused["fingerprint"]

    def pause(self):
        self.sluice("pause", "orders", check=True)
        self.assertTrue(self.job()["paused"])
        self.sluice("send", "--queue", "orders", "--id", "while-paused", "--text", "fine 1", check=True)

    def bring_back(self, fingerprint):
        count = CAUSES["refused"]
        dry = self.sluice("redrive", "--queue", "orders", "--error", fingerprint, "--dry-run", check=True)
        self.assertIn(str(count), dry.stdout + dry.stderr)
        self.assertEqual(3000, self.dead())
        watch = subprocess.Popen([SLUICE, "stats", "--queue", "orders", "--watch"], cwd=self.folder, env=self.environment,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(watch.kill)
        begin = time.monotonic()
        done = self.sluice("redrive", "--queue", "orders", "--error", fingerprint, "--rate", f"{RATE}/s", "--yes", check=True)
        took = time.monotonic() - begin
        watch.terminate()
        seen = watch.communicate()[0]
        self.assertIn(str(count), done.stdout + done.stderr)
        # The first second's worth goes at once.
        self.assertGreater(took, (count - RATE) / RATE * 0.8)
        self.assertGreater(len(set(re.findall(r"\b\d+\b", seen))), 3, "the watcher saw it go")
        self.assertEqual(3000 - count, self.dead())
        self.assertEqual(0, self.done(), "the job is paused")

    def resume(self):
        self.sluice("resume", "orders", check=True)
        self.assertFalse(self.job()["paused"])
        until("what was brought back is done", lambda: self.done() == CAUSES["refused"] + 1)
        self.assertNotIn(CAUSES["refused"], self.causes())
        said = json.dumps(self.json("audit"))
        for word in ("\"pause queue orders", "reset: pause queue orders"):
            self.assertIn(word, said)

    def restart_the_host_of_a_stuck_handler(self):
        self.sluice("send", "--queue", "orders", "--id", "hangs", "--text", "hang 1", check=True)
        until("it is stuck", lambda: any(one["message"] == "hangs" and one["stuck"] for one in self.json("running")))
        stuck = next(one for one in self.json("running") if one["message"] == "hangs")
        host = next(host for host in self.json("hosts") if host["host"] == stuck["host"])
        self.expect_restart()
        drained = self.sluice("drain", host["host"], "--wait")
        self.assertIn(drained.returncode, (0, 75), drained.stdout + drained.stderr)
        self.wait_for_restart()
        until("another process is there", lambda: any(
            one["pid"] != host["pid"] and one["state"] != "silent" for one in self.json("hosts")))
        self.sluice("send", "--queue", "orders", "--id", "after", "--text", "fine 2", check=True)
        until("it works", lambda: "after" in self.lines("done"))
        self.assertEqual([], [one for one in self.json("running") if one["stuck"]])


class OperatingDynamo(OperatingSqlite):
    store = "dynamodb"


if __name__ == "__main__":
    main()
