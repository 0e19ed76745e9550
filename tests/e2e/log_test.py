#!/usr/bin/env python3
"""What the host's log says of failures, and that a log in JSON is JSON from its first line to its last."""

import json

from support import Case, main, until

REASON = "no such customer " + "x" * 3900


class LogInJson(Case):
    def write_host(self, **settings):
        super().write_host(**settings)
        with open(self.path("host.toml"), encoding="utf-8") as file:
            text = file.read()
        self.write("host.toml", text.replace('[log]\n', '[log]\nformat = "json"\n'))

    def test_every_line_is_json_and_a_long_reason_is_logged_once(self):
        self.write_job("fails", options=f'outcome = "throw"\nreason = "{REASON}"',
                       extra='concurrency = 1\n[job.retry]\nmax_attempts = 3\nbase = "20ms"\nmax = "20ms"\njitter = "none"')
        (message,) = self.send(1)
        run = self.start()
        until("it is given up", lambda: self.stats()["dlq"] == 1)
        self.assertEqual(0, run.stop(), run.log())
        lines = [json.loads(line) for line in run.log().splitlines()]
        for line in lines:
            self.assertLessEqual({"time", "level", "message"}, set(line), line)
        last = lines[-1]
        self.assertTrue(last["message"].startswith("drain certificate: claimed 3"), last)
        self.assertEqual((3, 2, 1, 0, True),
                         (last["claimed"], last["retried"], last["rejected"], last["stranded"], last["clean"]))
        running = next(line for line in lines if line["message"] == "running")
        self.assertEqual(1, running["jobs"])
        failed = [line for line in lines if line.get("id") == message]
        self.assertEqual([1, 2, 3], [line["attempt"] for line in failed])
        self.assertEqual([20, 20, None], [line.get("wait_ms") for line in failed])
        self.assertTrue(all(isinstance(line["took_ms"], int) for line in failed), failed)
        self.assertEqual(1, run.log().count(REASON), "the whole text once")
        shown = json.loads(self.sluice("get", "--queue", "orders", message, check=True).stdout)
        self.assertEqual(2, len(shown["failure"]["earlier"]))
        self.assertEqual([2, 1], [attempt["attempt"] for attempt in shown["failure"]["earlier"]])
        self.assertEqual([20, 20], [attempt["wait_ms"] for attempt in shown["failure"]["earlier"]])


class TimeOuts(Case):
    def test_a_time_out_is_called_one_and_counted(self):
        self.write_job("exec", options='command = ["sleep", "3600"]',
                       extra='timeout = "100ms"\nconcurrency = 1\n[job.retry]\nmax_attempts = 1')
        (message,) = self.send(1)
        run = self.start()
        until("it is given up", lambda: self.stats()["dlq"] == 1)
        until("the host's record tells it apart", lambda: [job["timed_out"] for job in json.loads(
            self.sluice("jobs", "--output", "json", check=True).stdout)] == [1])
        self.assertEqual(0, run.stop(), run.log())
        shown = json.loads(self.sluice("get", "--queue", "orders", message, check=True).stdout)
        self.assertIn("timed out: did not end within the job's timeout", shown["failure"]["error"])


if __name__ == "__main__":
    main()
