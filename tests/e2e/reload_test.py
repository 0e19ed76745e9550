#!/usr/bin/env python3
"""SIGHUP: unchanged jobs run on, changed ones restart, bad files change nothing, new plugins are found."""

import os
import re
import shutil
import signal

from support import BUILD, FIXTURE_PLUGINS, Case, free_port, http, main, until


class Reload(Case):
    def counted(self, name, file, queue, extra=""):
        self.write_job("counts", name=name, queue=queue, options=f'path = "{self.path(file)}"', extra=extra)

    def hangup(self, run, phrase):
        before = run.log().count(phrase)
        run.kill(signal.SIGHUP)
        until(f"the log says {phrase!r}:\n{run.log()}", lambda: run.log().count(phrase) > before)

    def test_an_unchanged_job_runs_on_undisturbed_while_another_is_added(self):
        self.write_job("sleeper", name="slow", queue="slow", options='duration = "1h"', extra="concurrency = 1")
        self.sluice("send", "--queue", "slow", "--data", "1", check=True)
        run = self.start()
        until("the slow one is at work", lambda: self.stats("slow")["in_flight"] == 1)
        self.counted("added", "added", "orders")
        ids = self.send(5)
        self.hangup(run, "reloaded")
        until("the new job works", lambda: sorted(self.lines("added")) == sorted(ids))
        self.assertEqual(1, self.stats("slow")["in_flight"])
        self.assertEqual(0, run.stop(), run.log())
        report = run.report()
        self.assertEqual(1, report["jobs"]["slow"]["claimed"], report)

    def test_a_changed_job_restarts_with_its_new_options(self):
        self.counted("orders", "one", "orders")
        run = self.start().started()
        first = self.send(3)
        until("worked by the old job", lambda: sorted(self.lines("one")) == sorted(first))
        self.counted("orders", "two", "orders")
        self.hangup(run, "reloaded")
        second = self.send(3)
        until("worked by the new job", lambda: sorted(self.lines("two")) == sorted(second))
        self.assertEqual(0, run.stop(), run.log())
        self.assert_certificate(run, done=6)
        self.assertEqual(6, run.report()["jobs"]["orders"]["done"])

    def test_the_only_limited_job_works_on_by_its_new_limit(self):
        self.counted("orders", "one", "orders", extra='rate_limit = "20/s"')
        run = self.start().started()
        first = self.send(3)
        until("worked by the old job", lambda: sorted(self.lines("one")) == sorted(first))
        self.counted("orders", "two", "orders", extra='rate_limit = "40/s"')
        self.hangup(run, "reloaded")
        second = self.send(5)
        until("worked by the new job", lambda: sorted(self.lines("two")) == sorted(second))
        self.assertEqual(0, run.stop(), run.log())

    def test_a_removed_job_drains(self):
        self.counted("orders", "one", "orders")
        self.counted("other", "two", "other")
        run = self.start().started()
        os.remove(self.path("jobs.d", "orders.toml"))
        self.hangup(run, "reloaded")
        self.send(2)
        self.sluice("send", "--queue", "other", "--data", "1", check=True)
        until("the other works", lambda: len(self.lines("two")) == 1)
        self.assertEqual([], self.lines("one"))
        self.assertEqual(0, run.stop(), run.log())

    def test_a_bad_file_changes_nothing_and_says_why(self):
        self.counted("orders", "one", "orders")
        run = self.start().started()
        self.write("jobs.d/orders.toml", '[job]\nqueue = "orders"\nhandler = "counts"\nconcurency = 3\n')
        self.hangup(run, "concurency")
        ids = self.send(4)
        until("the old job works on", lambda: sorted(self.lines("one")) == sorted(ids))
        self.assertEqual(0, run.stop(), run.log())

    def test_an_edited_host_file_says_which_keys_wait_for_a_restart(self):
        self.counted("orders", "one", "orders")
        run = self.start().started()
        with open(self.path("host.toml"), encoding="utf-8") as file:
            text = file.read()
        self.write("host.toml", text.replace('drain_timeout = "10s"', 'drain_timeout = "11s"') + "[queues.new]\ntable = \"abc\"\n")
        self.hangup(run, "these keys wait for a restart")
        self.assertIn('keys="host.drain_timeout, queues.new"', run.log())
        self.assertIn("host.toml is read at the start only, so these of its keys wait for a restart: host.drain_timeout, queues.new",
                      self.sluice("reload", check=True).stdout)
        self.write("host.toml", "[host\n")
        self.hangup(run, "would not start again")
        self.write("host.toml", text)
        ids = self.send(2)
        until("the job works on", lambda: sorted(self.lines("one")) == sorted(ids))
        self.assertEqual(0, run.stop(), run.log())

    def test_a_handler_that_refuses_its_options_changes_nothing(self):
        self.counted("orders", "one", "orders")
        run = self.start().started()
        self.write("jobs.d/orders.toml", '[job]\nqueue = "orders"\nhandler = "counts"\n[job.options]\nno_such = "x"\n')
        self.hangup(run, "no_such")
        ids = self.send(4)
        until("the old job works on", lambda: sorted(self.lines("one")) == sorted(ids))
        self.assertEqual(0, run.stop(), run.log())

    def test_a_new_plugin_is_found(self):
        self.counted("orders", "one", "orders")
        run = self.start().started()
        self.write_job("noop", name="new", queue="new")
        self.hangup(run, "reloaded")
        self.sluice("send", "--queue", "new", "--data", "1", check=True)
        until("worked", lambda: self.stats("new")["total"] == 0)
        self.assertEqual(0, run.stop(), run.log())

    def bring(self, source, plugin="counts"):
        """Puts another file in the plugin's place, as a deployment does."""
        shutil.copy(source, self.path("next"))
        os.rename(self.path("next"), self.path("plugins", plugin + ".so"))

    def replaced_under_load(self, extra):
        self.counted("orders", "lines", "orders", extra=extra)
        self.write_job("sleeper", name="slow", queue="slow", options='duration = "1h"', extra="concurrency = 1")
        self.sluice("send", "--queue", "slow", "--data", "1", check=True)
        self.bring(os.path.join(FIXTURE_PLUGINS, "counts.so"))
        run = self.start()
        until("the slow one is at work", lambda: self.stats("slow")["in_flight"] == 1)
        before = self.send(20)
        until("the old code works", lambda: set(self.lines("lines")) & set(before))
        self.bring(os.path.join(BUILD, "tests", "plugins-next", "counts.so"))
        between = self.send(20)
        until("check names the host that is to reload", lambda: re.search(
            r"orders: .* of counts 2.0.0, .*; changed: \S+ runs it with counts.so 1.0.0 until it reloads", self.sluice("check").stdout))
        self.hangup(run, "reloaded")
        self.assertIn("orders (counts.so 1.0.0, now 2.0.0)", run.log())
        until("its own word goes, not what boards have", lambda: "changed:" not in self.sluice("check", check=True).stdout)
        self.assertEqual(1, self.stats("slow")["in_flight"], "jobs of other plugins run on undisturbed")
        after = self.send(3)
        until("the new code works", lambda: {id + " 2" for id in after} <= set(self.lines("lines")))
        until("all are worked, each once", lambda: sorted(line.split()[0] for line in self.lines("lines")) == sorted(before + between + after))
        return run

    def test_a_replaced_plugin_takes_over_under_load_and_a_bad_one_does_not(self):
        run = self.replaced_under_load("")
        self.hangup(run, "reloaded")
        self.assertIn("unchanged=2", run.log())
        self.bring(os.path.join(FIXTURE_PLUGINS, "crashes_at_load.so"))
        self.hangup(run, "version 2.0.0, which is loaded, stays in use")
        until("it is told who has not the new code", lambda: re.search(r"with their old code\s+jobs=orders\b", run.log()))
        self.assertIn("unchanged=1", run.log())
        last = self.send(1)
        until("the second code works on", lambda: last[0] + " 2" in self.lines("lines"))
        self.assertEqual(0, run.stop(), run.log())
        self.assertEqual(44, run.report()["jobs"]["orders"]["done"])

    def test_runners_of_a_replaced_plugin_run_the_new_one(self):
        run = self.replaced_under_load('isolation = "process"')
        self.assertEqual(0, run.stop(), run.log())
        self.assertEqual(43, run.report()["jobs"]["orders"]["done"])

    def test_endpoints_live_through_reloads(self):
        port = free_port()
        self.write_host(http_port=port)
        self.counted("orders", "one", "orders")
        run = self.start()
        until("ready", lambda: http(port, "/readyz")[0] == 200)
        for _ in range(3):
            self.hangup(run, "reloaded")
        self.assertEqual(200, http(port, "/healthz")[0])
        self.send(2)
        until("worked", lambda: len(self.lines("one")) == 2)
        metrics = until("counted", lambda: "sluice_queue_depth" in http(port, "/metrics")[1] and http(port, "/metrics")[1])
        for name in ("sluice_outcomes_total", "sluice_handler_duration_seconds_bucket", "sluice_queue_depth", "sluice_in_flight"):
            self.assertIn(name, metrics)
        self.assertEqual(404, http(port, "/nothing")[0])
        self.assertEqual(0, run.stop(), run.log())


if __name__ == "__main__":
    main()
