#!/usr/bin/env python3
"""Stopping: drains, second signals, kills, PID 1; every time nothing is lost and the certificate adds up."""

import json
import os
import shutil
import signal
import socket
import subprocess

from support import SLUICE, Case, Model, Run, free_port, http, main, until


class DrainSqlite(Case):
    def count_job(self, extra="", sleep=""):
        options = f'path = "{self.path("worked")}"\n' + (f'sleep = "{sleep}"\n' if sleep else "")
        self.write_job("counts", options=options, extra=extra)

    def test_until_empty_works_everything_off_and_ends_with_zero(self):
        self.count_job()
        ids = self.send(500)
        run = self.start("--until-empty")
        self.assertEqual(0, run.wait(), run.log())
        self.assertEqual(sorted(ids), sorted(self.lines("worked")))
        self.assert_certificate(run, claimed=500, done=500, stranded=0)
        self.assertEqual(True, run.report()["clean"])
        self.assertEqual(0, self.stats()["total"])

    def test_until_empty_leaves_what_is_delayed(self):
        self.count_job()
        self.sluice("send", "--queue", "orders", "--id", "later", "--delay", "1h", "--data", "1", check=True)
        self.send(3)
        run = self.start("--until-empty")
        self.assertEqual(0, run.wait(), run.log())
        self.assertEqual(1, self.stats()["delayed"])
        self.assertEqual(3, len(self.lines("worked")))

    def test_sigterm_under_load_loses_nothing_and_strands_nothing(self):
        self.count_job(extra="concurrency = 8")
        ids = self.send(20000)
        run = self.start()
        until("some are worked off", lambda: len(self.lines("worked")) > 200)
        self.assertEqual(0, run.stop(signal.SIGTERM), run.log())
        total = self.assert_certificate(run, stranded=0, lost=0)
        worked = self.lines("worked")
        self.assertEqual(len(worked), len(set(worked)))
        self.assertEqual(total["done"], len(worked))
        left = self.stats()
        self.assertEqual(len(ids), len(worked) + left["ready"], left)
        self.assertEqual(0, left["in_flight"])

    def test_what_is_released_has_not_burnt_an_attempt(self):
        self.write_job("sleeper", options='duration = "1h"', extra="concurrency = 1")
        self.send(1)
        run = self.start()
        until("the handler sleeps", lambda: self.at_work() == 1)
        self.assertEqual(0, run.stop(), run.log())
        self.assert_certificate(run, claimed=1, released=1)
        shown = json.loads(self.sluice("ls", "--queue", "orders", check=True).stdout)["statuses"][0]
        self.assertEqual(0, shown["receive_count"], shown)
        self.assertEqual(1, self.stats()["ready"])

    def test_sigint_ends_it_as_sigterm_does(self):
        self.count_job()
        self.send(10)
        run = self.start().started()
        until("all are worked off", lambda: len(self.lines("worked")) == 10)
        self.assertEqual(0, run.stop(signal.SIGINT), run.log())
        self.assert_certificate(run, done=10)

    def test_readyz_turns_503_while_draining(self):
        port = free_port()
        self.write_host(http_port=port, drain="30s")
        self.write_job("sleeper", options='duration = "1h"\nignore_stop = true', extra="concurrency = 1")
        self.send(1)
        run = self.start()
        until("ready", lambda: http(port, "/readyz")[0] == 200)
        until("the handler sleeps", lambda: self.at_work() == 1)
        run.kill(signal.SIGTERM)
        until("not ready", lambda: http(port, "/readyz")[0] == 503)
        run.kill(signal.SIGTERM)
        self.assertEqual(75, run.wait(), run.log())

    def test_second_signal_stops_hard_and_says_that_work_was_abandoned(self):
        self.write_host(drain="1h")
        self.write_job("sleeper", options='duration = "1h"\nignore_stop = true', extra="concurrency = 1")
        self.send(1)
        run = self.start()
        until("the handler sleeps", lambda: self.at_work() == 1)
        run.kill(signal.SIGTERM)
        until("it drains", lambda: "drain" in run.log())
        run.kill(signal.SIGTERM)
        self.assertEqual(75, run.wait(), run.log())
        # The one short try gives the message back; what was abandoned is the handler, which had not returned.
        total = self.assert_certificate(run, claimed=1)
        self.assertEqual(1, total["released"] + total["stranded"], total)
        self.assertEqual(False, run.report()["clean"])

    def test_drain_timeout_ends_a_handler_that_ignores_its_stop(self):
        self.write_host(drain="1s")
        self.write_job("sleeper", options='duration = "1h"\nignore_stop = true', extra="concurrency = 1")
        self.send(1)
        run = self.start()
        until("the handler sleeps", lambda: self.at_work() == 1)
        self.assertEqual(75, run.stop(), run.log())
        self.assertIn("sleeper", run.log())

    def test_sigterm_during_start_ends_clean(self):
        self.count_job()
        self.send(100)
        for _ in range(15):
            run = self.start()
            run.kill(signal.SIGTERM)
            self.assertIn(run.wait(), (0, -signal.SIGTERM), run.log())
        run = self.start("--until-empty")
        self.assertEqual(0, run.wait(), run.log())
        self.assertEqual(100, len(set(self.lines("worked"))))

    def test_sigterm_during_start_does_not_wait_for_a_store_that_does_not_answer(self):
        with socket.socket() as deaf:
            deaf.bind(("127.0.0.1", 0))
            deaf.listen()
            self.write("host.toml", '[store]\nkind = "dynamodb"\n[dynamodb]\n'
                                    f'endpoint = "http://127.0.0.1:{deaf.getsockname()[1]}"\n')
            self.write_job("noop")
            run = self.start()
            connection, _ = deaf.accept()
            with connection:
                self.assertEqual(0, run.stop(), run.log())
        self.assert_certificate(run, claimed=0)
        self.assertNotIn("does not answer yet", run.log())
        self.assertNotIn("running", run.log())

    def test_kill_9_in_the_middle_loses_nothing(self):
        self.write_host(visibility="1s")
        # A host that is killed takes an attempt of all that it had claimed with it; more than there are kills here.
        self.count_job(extra="concurrency = 4\n[job.retry]\nmax_attempts = 100", sleep="1ms")
        ids = self.send(2000)
        for _ in range(5):
            run = self.start()
            before = len(self.lines("worked"))
            until("it works on", lambda: len(self.lines("worked")) > before + 50 or self.stats()["total"] == 0)
            run.stop(signal.SIGKILL)
        run = self.start()
        until("all are gone", lambda: self.stats()["total"] == 0)
        self.assertEqual(0, run.stop(), run.log())
        self.assertEqual(set(ids), set(self.lines("worked")))

    def start_as_pid_1(self):
        if os.geteuid() != 0 or not shutil.which("unshare"):
            self.skipTest("SKIPPED: needs root and unshare")
        probe = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "true"], capture_output=True, check=False)
        if probe.returncode != 0:
            self.skipTest("SKIPPED: namespaces are not allowed here")
        log = self.path("pid1.log")
        with open(log, "w", encoding="utf-8") as sink:
            process = subprocess.Popen(["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", SLUICE, "run",
                                        "--drain-report", self.path("pid1.json")],
                                       cwd=self.folder, env=self.environment, stdout=sink, stderr=subprocess.STDOUT)
        run = Run(process, log, self.path("pid1.json"))
        self.runs.append(run)
        return run

    @staticmethod
    def children(pid):
        with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
            return [int(child) for child in file.read().split()]

    def test_works_as_pid_1(self):
        self.count_job()
        self.send(10)
        run = self.start_as_pid_1()
        until("all are worked off", lambda: len(self.lines("worked")) == 10)
        os.kill(self.children(run.process.pid)[0], signal.SIGTERM)
        self.assertEqual(0, run.wait(), run.log())
        self.assert_certificate(run, done=10)

    def test_reaps_orphans_as_pid_1_and_keeps_the_exit_codes_of_commands(self):
        orphan = f'(sleep 0.05; echo gone >> {self.path("orphans")}) >/dev/null 2>&1 & cat >> {self.path("worked")}; echo >> {self.path("worked")}'
        self.write_job("exec", name="orphans",
                       options=f"shell = true\ncommand = [{json.dumps(orphan)}]\n")
        self.send(5)
        run = self.start_as_pid_1()
        until("all are worked off", lambda: len(self.lines("worked")) == 5)
        until("the orphans have ended", lambda: len(self.lines("orphans")) == 5)
        init = self.children(run.process.pid)[0]
        until("only the host is left below process 1", lambda: len(self.children(init)) == 1)
        os.kill(init, signal.SIGTERM)
        self.assertEqual(0, run.wait(), run.log())
        self.assert_certificate(run, done=5, retried=0)

    def test_certificate_is_one_line_on_stderr(self):
        self.count_job()
        self.send(7)
        run = self.start("--until-empty")
        run.wait()
        last = run.log().strip().splitlines()[-1]
        for word in ("claimed", "done", "stranded"):
            self.assertIn(word, last)


class DrainDynamo(DrainSqlite):
    store = "dynamodb"

    # What the store has no part in is not run twice.
    test_works_as_pid_1 = None
    test_certificate_is_one_line_on_stderr = None
    test_readyz_turns_503_while_draining = None
    test_sigterm_during_start_ends_clean = None
    test_sigterm_during_start_does_not_wait_for_a_store_that_does_not_answer = None

    def test_sigterm_under_load_loses_nothing_and_strands_nothing(self):
        self.write_host(drain="60s")  # a busy machine may take its time, as long as nothing is left
        self.count_job(extra="concurrency = 8")
        ids = self.send(3000)
        run = self.start()
        until("some are worked off", lambda: len(self.lines("worked")) > 200)
        self.assertEqual(0, run.stop(signal.SIGTERM), run.log())
        total = self.assert_certificate(run, stranded=0, lost=0)
        worked = self.lines("worked")
        self.assertEqual(len(worked), len(set(worked)))
        self.assertEqual(total["done"], len(worked))
        self.assertEqual(len(ids), len(worked) + self.stats()["ready"])


class DrainLaggingIndex(Case):
    """An index shows for seconds what the table no longer holds, and not yet what it does."""

    store = "dynamodb"

    def start_tables(self):
        return Model("--shortest-lag", "3000", "--typical-lag", "3500")

    def test_until_empty_means_the_table(self):
        self.write_job("counts", options=f'path = "{self.path("worked")}"')
        ids = self.send(5)
        run = self.start("--until-empty")
        self.assertEqual(0, run.wait(), run.log())
        self.assertEqual(sorted(ids), sorted(self.lines("worked")))
        self.assert_certificate(run, done=5, stranded=0)


if __name__ == "__main__":
    main()
