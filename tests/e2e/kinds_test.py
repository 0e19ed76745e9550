#!/usr/bin/env python3
"""Handlers that take batches, and handlers that end their messages later: done, drained, killed in the middle."""

import resource
import signal

from support import Case, main, until


class Kinds(Case):
    """A job of the plugin `kinds`, whose handlers write down what they saw: the id, and how many came together."""

    def kinds_job(self, handler, options="", extra=""):
        self.write_job(handler, plugin="kinds", options=f'path = "{self.path("seen")}"\n{options}', extra=extra)

    def seen(self):
        return [line.split() for line in self.lines("seen")]

    def order(self, message, what):
        self.sluice("send", "--queue", "orders", "--id", message, "--data", "1", "--attr", "do=" + what, check=True)

    def work_off(self, *words):
        run = self.start("--until-empty", *words)
        self.assertEqual(0, run.wait(), run.log())
        return run

    def deaths_until_empty(self):
        """Starts hosts until nothing is left. What waits for its next attempt does not keep one from ending."""
        deaths = 0
        for _ in range(10):
            deaths += self.start("--until-empty").wait() != 0
            if self.stats()["total"] == 0:
                break
        return deaths

    def messages_in(self, half, queue="orders"):
        return self.sluice("ls", "--queue", queue, *half, check=True).stdout


class Batches(Kinds):
    def test_messages_come_together_and_each_has_its_own_end(self):
        self.kinds_job("batches", extra="concurrency = 1\nmax_batch = 50")
        self.write_host(extra="[queues.others]\n")
        self.send(97)
        for message, what in (("bad", "reject"), ("loud", "log"), ("sender", "send")):
            self.order(message, what)
        run = self.work_off()
        self.assert_certificate(run, claimed=100, done=99, rejected=1, stranded=0)
        self.assertEqual(["50"], sorted({size for _, size in self.seen()}), self.seen())
        self.assertIn("about loud", run.log())
        self.assertEqual(1, self.stats("others")["ready"])

    def test_an_exception_fails_the_whole_batch(self):
        self.kinds_job("batches", extra='concurrency = 1\n[job.retry]\nmax_attempts = 2\nbase = "10ms"\njitter = "none"')
        self.send(4)
        self.order("thrower", "throw")
        run = self.work_off()
        self.assert_certificate(run, stranded=0)
        self.assertIn("the whole batch", run.log())
        self.assertGreaterEqual(run.report()["total"]["retried"], 5)

    def test_what_waits_for_its_batch_goes_when_its_time_has_come(self):
        self.kinds_job("batches", extra='concurrency = 1\nmax_batch = 1000\nmax_wait = "200ms"')
        self.send(30)
        run = self.work_off()
        self.assert_certificate(run, done=30)
        self.assertEqual({"30"}, {size for _, size in self.seen()})

    def test_a_drain_stops_the_call_and_burns_no_attempt(self):
        self.kinds_job("batches", options='sleep = "1h"', extra='concurrency = 1\ntimeout = "2h"')
        self.send(20)
        run = self.start()
        until("the handler sleeps", lambda: self.at_work() == 20)
        self.assertEqual(0, run.stop(), run.log())
        self.assert_certificate(run, claimed=20, released=20)

    def test_max_batch_is_refused_for_a_handler_without_batches(self):
        self.write_job("noop", extra="max_batch = 5")
        done = self.sluice("check")
        self.assertEqual(78, done.returncode, done.stderr)
        self.assertIn("takes one message at a time, so max_batch and max_wait mean nothing", done.stdout + done.stderr)

    def test_more_threads_than_a_job_may_have_are_refused(self):
        self.write_job("noop", extra="concurrency = 1025")
        done = self.sluice("check")
        self.assertEqual(78, done.returncode, done.stderr)
        self.assertIn("of which a job has at most 1024; lower concurrency from 1025", done.stdout + done.stderr)


class BatchDeaths(Kinds):
    """One message ends the process: the others of its batch run alone next, and are done."""

    isolation = "thread"

    def explode(self, what, attempts=3):
        self.kinds_job("batches", extra=f'concurrency = 2\nisolation = "{self.isolation}"\ntimeout = "2s"\n'
                                        f'[job.retry]\nmax_attempts = {attempts}\nbase = "10ms"\njitter = "none"')
        ids = self.send(20)
        self.order("the-bomb", what)
        ids += self.send(20)
        deaths = self.deaths_until_empty()
        times = {}
        for message, _ in self.seen():
            times[message] = times.get(message, 0) + 1
        self.assertEqual(set(ids) | {"the-bomb"}, set(times))
        self.assertEqual(0, self.stats()["total"])
        self.assertIn("the-bomb", self.messages_in(["--dlq"]))
        self.assertLessEqual(max(times[message] for message in ids), 2, times)
        self.assertLessEqual(times["the-bomb"], attempts + 1)
        return deaths

    def test_a_bomb_among_them(self):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        self.assertEqual(1 if self.isolation == "thread" else 0, self.explode("abort"))


class BatchDeathsApart(BatchDeaths):
    isolation = "process"

    def test_one_that_hangs(self):
        self.assertEqual(0, self.explode("hang", attempts=1))


class Async(Kinds):
    def test_thousands_are_at_work_at_once(self):
        self.kinds_job("coroutines", options='sleep = "500ms"', extra="concurrency = 4000")
        self.assertIn(", 4000 messages at once, ", self.sluice("check", "--output", "text", check=True).stdout)
        self.send(3000)
        run = self.work_off()
        self.assert_certificate(run, claimed=3000, done=3000, stranded=0)
        # One after the other, or eight at a time, it would take minutes.
        self.assertEqual(3000, len(set(message for message, _ in self.seen())))

    def test_each_has_its_own_end(self):
        self.kinds_job("coroutines", extra="concurrency = 100\n[job.retry]\nmax_attempts = 1")
        self.write_host(extra="[queues.others]\n")
        self.send(10)
        for message, what in (("bad", "reject"), ("loud", "log"), ("sender", "send"), ("thrower", "throw")):
            self.order(message, what)
        run = self.work_off()
        self.assert_certificate(run, claimed=14, done=12, rejected=2, stranded=0)
        self.assertIn("about loud", run.log())
        self.assertIn("as it was told", run.log())
        self.assertEqual(1, self.stats("others")["ready"])

    def test_a_drain_stops_them_all_and_burns_no_attempt(self):
        self.kinds_job("coroutines", options='sleep = "1h"', extra='concurrency = 500\ntimeout = "2h"')
        self.send(300)
        run = self.start()
        until("all of them sleep", lambda: self.at_work() == 300)
        self.assertEqual(0, run.stop(), run.log())
        self.assert_certificate(run, claimed=300, released=300)

    def test_what_is_never_completed_is_given_up_and_the_rest_goes_on(self):
        self.kinds_job("careless", extra='concurrency = 100\ntimeout = "1s"\n[job.retry]\nmax_attempts = 1')
        self.order("kept", "never")
        self.order("dropped", "drop")
        self.send(50)
        run = self.start()
        until("the others are done", lambda: self.stats()["total"] <= 1)
        until("it is given up", lambda: "did not complete the message" in run.log())
        until("it has gone", lambda: self.stats()["total"] == 0)
        self.assertIn("dropped its AsyncContext", run.log())
        # Its thread is not waited for beyond the drain.
        self.assertEqual(75, run.stop(), run.log())
        self.assert_certificate(run, done=50, rejected=2, stranded=0)

    def test_completing_twice_is_named_and_does_no_harm(self):
        self.write_job("twice", plugin="kinds")
        self.order("once", "")
        run = self.work_off()
        self.assert_certificate(run, done=1)
        self.assertRegex(run.log(), "completed a message that has ended .*completed before.*id=once|id=once.*completed before")

    def test_killed_in_the_middle_all_of_them_come_back(self):
        self.kinds_job("coroutines", options='sleep = "1s"', extra="concurrency = 200")
        ids = self.send(40)
        run = self.start()
        until("all of them sleep", lambda: self.at_work() == 40)
        run.kill(signal.SIGKILL)
        run.process.wait()
        self.assertEqual(0, self.start("--until-empty").wait())
        self.assertEqual(set(ids), {message for message, _ in self.seen()})
        self.assertEqual(0, self.stats()["total"])

    def test_one_that_ends_the_process_is_found_among_them(self):
        self.kinds_job("coroutines", options='sleep = "20ms"',
                       extra='concurrency = 200\n[job.retry]\nmax_attempts = 3\nbase = "10ms"\njitter = "none"')
        self.send(20)
        self.order("the-bomb", "abort")
        self.assertEqual(1, self.deaths_until_empty())
        self.assertIn("the-bomb", self.messages_in(["--dlq"]))
        self.assertEqual(0, self.stats()["total"])

    def test_in_processes_of_their_own_each_runs_alone(self):
        self.kinds_job("coroutines", options='sleep = "1ms"', extra='concurrency = 2\nisolation = "process"')
        self.send(20)
        run = self.work_off()
        self.assert_certificate(run, done=20, stranded=0)


if __name__ == "__main__":
    main()
