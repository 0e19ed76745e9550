#!/usr/bin/env python3
"""Leases: long handlers, zombies, two hosts, poison, retries; on both stores."""

import json
import os
import signal

from support import Case, main, until


class LeaseSqlite(Case):
    def worked(self):
        return self.lines("worked")

    def test_a_handler_longer_than_the_visibility_timeout_keeps_its_message(self):
        self.write_host(visibility="1s")
        self.write_job("counts", options=f'path = "{self.path("worked")}"\nsleep = "4s"')
        self.send(1)
        run = self.start("--until-empty")
        other = self.start(report="other.json")
        self.assertEqual(0, run.wait(), run.log())
        other.stop()
        self.assertEqual(1, len(self.worked()), run.log() + other.log())

    def test_a_zombie_cannot_settle_what_another_host_took_over(self):
        self.write_host(visibility="1s")
        self.write_job("counts", options=f'path = "{self.path("worked")}"\nsleep = "2s"', extra="concurrency = 1")
        (message,) = self.send(1)
        zombie = self.start()
        until("its handler is at work", lambda: self.at_work() == 1)
        zombie.kill(signal.SIGSTOP)
        def version():
            return json.loads(self.sluice("get", "--queue", "orders", "--id", message).stdout or '{"version": 0}')["version"]
        held = version()
        heir = self.start(report="heir.json")
        until("the heir has it", lambda: version() > held)
        zombie.kill(signal.SIGCONT)
        until("the heir is done", lambda: self.stats()["total"] == 0)
        self.assertEqual(0, heir.stop(), heir.log())
        self.assertEqual(0, zombie.stop(), zombie.log())
        zombie_total = zombie.report()["total"]
        self.assertEqual(1, zombie_total["lost"], zombie_total)
        self.assertEqual(0, zombie_total["done"], zombie_total)
        self.assertEqual(1, heir.report()["total"]["done"], heir.report())

    def test_a_frozen_host_that_nobody_replaced_settles_what_it_finished(self):
        self.write_host(visibility="2s", extra="".join(f'[queues.{job}]\ntable = "{job}"\nvisibility_timeout = "2s"\n'
                                                        for job in ("quick", "slow")))
        # Handlers that end while their host is frozen, and such as are still at work when it goes on.
        for job, sleep in (("quick", "1s"), ("slow", "6s")):
            if self.store == "dynamodb":
                self.sluice("table", "create", "--queue", job, check=True)
            self.write_job("counts", name=job, queue=job, extra="concurrency = 8",
                           options=f'path = "{self.path("worked")}"\nsleep = "{sleep}"')
        ids = self.send(8, queue="quick") + self.send(8, queue="slow")
        run = self.start()
        until("all handlers are at work", lambda: self.at_work() == 16)
        for _ in range(2):
            run.kill(signal.SIGSTOP)
            until("its leases have ended", lambda: all(self.stats(job)["ready"] == self.stats(job)["total"]
                                                       for job in ("quick", "slow")))
            run.kill(signal.SIGCONT)
            until("it has its messages back, or is done with them", lambda: self.stats("slow")["ready"] == 0)
        until("everything is done", lambda: self.stats("quick")["total"] + self.stats("slow")["total"] == 0)
        self.assertEqual(0, run.stop(), run.log())
        self.assertEqual(sorted(ids), sorted(self.worked()), run.log())
        total = run.report()["total"]
        self.assertEqual(16, total["done"], total)
        self.assertEqual(0, total["stranded"], total)

    def test_two_hosts_share_a_queue_and_no_message_is_worked_twice(self):
        self.write_job("counts", options=f'path = "{self.path("worked")}"')
        ids = self.send(2000)
        one = self.start("--until-empty", report="one.json")
        two = self.start("--until-empty", report="two.json")
        self.assertEqual((0, 0), (one.wait(), two.wait()), one.log() + two.log())
        self.assertEqual(sorted(ids), sorted(self.worked()))
        self.assertEqual(2000, one.report()["total"]["done"] + two.report()["total"]["done"])

    def test_a_message_that_kills_the_process_ends_in_the_dlq(self):
        self.write_host(visibility="1s")
        self.write_job("crashes", options='when_body = "bomb"', extra="concurrency = 1\n[job.retry]\nmax_attempts = 2")
        self.sluice("send", "--queue", "orders", "--id", "bomb", "--data", '"bomb"', check=True)
        first = self.start()
        until("it takes its host with it", lambda: first.process.poll() is not None)
        # From then on it runs where it can hurt nobody but itself.
        second = self.start()
        until("it is buried", lambda: self.stats()["dlq"] == 1)
        self.assertEqual(0, second.stop(), second.log())
        self.assert_certificate(second, claimed=1, rejected=1)
        shown = json.loads(self.sluice("get", "--queue", "orders", "--id", "bomb", check=True).stdout)
        self.assertEqual("DLQ", shown["queue_type"])
        self.assertIn("SIG", json.dumps(shown["failure"]))

    def test_a_host_that_comes_back_late_still_blames_the_message(self):
        self.write_host(visibility="1s")
        self.write_job("crashes", options='when_body = "bomb"', extra="concurrency = 1\n[job.retry]\nmax_attempts = 2")
        self.sluice("send", "--queue", "orders", "--id", "bomb", "--data", '"bomb"', check=True)
        first = self.start()
        until("it takes its host with it", lambda: first.process.poll() is not None)
        until("its lease has run out", lambda: self.stats()["ready"] == 1)
        second = self.start()
        until("it is buried", lambda: self.stats()["dlq"] == 1)
        self.assertEqual(0, second.stop(), second.log())
        self.assert_certificate(second, claimed=1, rejected=1)
        self.assertIn("counted=1", second.log())

    def test_retries_back_off_and_then_lie_in_the_dlq_with_their_reason(self):
        self.write_job("fails", options='outcome = "retry"\nreason = "no luck today"',
                       extra='[job.retry]\nmax_attempts = 3\nbase = "10ms"\njitter = "none"')
        (message,) = self.send(1)
        run = self.start()
        until("it is dead", lambda: self.stats()["dlq"] == 1)
        self.assertEqual(0, run.stop(), run.log())
        self.assert_certificate(run, claimed=3, retried=2, rejected=1)
        shown = json.loads(self.sluice("get", "--queue", "orders", "--id", message, check=True).stdout)
        self.assertIn("no luck today", shown["failure"]["error"])
        self.assertEqual(3, shown["failure"]["attempts"])
        self.assertEqual("e2e", shown["failure"]["host"])

    def test_reject_and_discard_and_throw(self):
        for outcome, dlq in (("reject", 1), ("discard", 0), ("throw", 1)):
            with self.subTest(outcome):
                self.sluice("purge", "--queue", "orders", "--yes", check=True)
                self.sluice("purge", "--queue", "orders", "--dlq", "--yes", check=True)
                self.write_job("fails", options=f'outcome = "{outcome}"\nreason = "because"',
                               extra='[job.retry]\nmax_attempts = 1')
                self.send(1)
                run = self.start("--until-empty")
                self.assertEqual(0, run.wait(), run.log())
                self.assertEqual(dlq, self.stats()["dlq"])

    def test_a_dlq_job_works_on_the_dlq(self):
        self.write_job("fails", options='outcome = "reject"\nreason = "because"')
        ids = self.send(5)
        self.assertEqual(0, self.start("--until-empty").wait())
        self.assertEqual(5, self.stats()["dlq"])
        os.remove(self.path("jobs.d", "orders.toml"))
        self.write_job("counts", name="dead", options=f'path = "{self.path("worked")}"', extra='source = "dlq"')
        run = self.start("--until-empty")
        self.assertEqual(0, run.wait(), run.log())
        self.assertEqual(sorted(ids), sorted(self.worked()))
        self.assertEqual(0, self.stats()["dlq"])


class LeaseDynamo(LeaseSqlite):
    store = "dynamodb"


if __name__ == "__main__":
    main()
