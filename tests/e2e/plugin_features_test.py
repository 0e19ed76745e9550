#!/usr/bin/env python3
"""What plugins get beyond messages: metrics of their own in /metrics, and handlers that go around others."""

import json
import re
import signal

from metrics_test import samples
from support import Case, free_port, http, main, until

WHO = {"name": "work", "plugin": "arounds"}


def around(handler, **options):
    text = f'[[job.around]]\nhandler = "{handler}"\n'
    if options:
        text += "[job.around.options]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in options.items())
    return text


class PluginMetrics(Case):
    isolation = "thread"

    def setUp(self):
        super().setUp()
        self.port = free_port()
        self.write_host(http_port=self.port)

    def scrape(self):
        return samples(http(self.port, "/metrics")[1])

    def value(self, name, **labels):
        return self.scrape().get((name, frozenset(labels.items())))

    def measures(self, name, queue="orders"):
        self.write_job("measures", name=name, queue=queue, extra=f'isolation = "{self.isolation}"\nconcurrency = 3')

    def test_they_are_shown_while_their_job_lives(self):
        self.measures("one")
        self.measures("two", queue="other")
        run = self.start()
        until("they are there", lambda: self.value("sluice_plugin_level", sluice_job="one") == 0)
        for body in ("red", "hot", "hot"):
            self.sluice("send", "--queue", "orders", "--text", body, check=True)
        self.sluice("send", "--queue", "other", "--text", "red", check=True)
        count = "sluice_plugin_parts_total"
        until("all are counted, by whichever worker",
              lambda: self.value(count, sluice_job="one", colour="hot") == 2000
              and self.value(count, sluice_job="one", colour="red") == 1
              and self.value(count, sluice_job="two", colour="red") == 1)
        self.assertIsNone(self.value(count, sluice_job="one"), "none without labels")
        self.assertEqual(3, self.value("sluice_plugin_sizes_count", sluice_job="one"))
        self.assertEqual(9, self.value("sluice_plugin_sizes_sum", sluice_job="one"))
        self.assertEqual(0, self.value("sluice_plugin_sizes_bucket", sluice_job="one", le="1"))
        self.assertEqual(3, self.value("sluice_plugin_sizes_bucket", sluice_job="one", le="+Inf"))
        self.assertEqual(0, self.value("sluice_metrics_dropped_total", sluice_job="one"))
        text = http(self.port, "/metrics")[1]
        self.assertEqual(1, text.count("# TYPE sluice_plugin_parts_total counter"), "two jobs, one family")
        self.assertIn("# HELP sluice_plugin_parts_total Parts by their colour", text)

        self.write_job("who", name="one", plugin="arounds")
        run.kill(signal.SIGHUP)
        until("they went with their job", lambda: "reloaded" in run.log()
              and not [name for name, labels in self.scrape()
                       if name.startswith("sluice_plugin") and ("sluice_job", "one") in labels])
        self.assertEqual(1, self.value(count, sluice_job="two", colour="red"))
        self.assertEqual(0, run.stop(), run.log())


class PluginMetricsInProcesses(PluginMetrics):
    isolation = "process"


class Around(Case):
    isolation = "thread"

    def outcome(self, run, what):
        return until(f"the log has {what}", lambda: what in run.log())

    def test_they_go_around_each_call_in_order(self):
        extra = f'isolation = "{self.isolation}"\nconcurrency = 2\n' + around("timing") + around("tenant") + around(
            "decrypt", key="\x01") + around("trail", mark="t")
        self.write_job("who", extra=extra, **WHO)
        checked = self.sluice("check", "--output", "text", check=True)
        self.assertIn("handler who of arounds 1.0.0 within timing, tenant, decrypt and trail", checked.stdout)
        shown = json.loads(self.sluice("check", "--output", "json", check=True).stdout)
        self.assertEqual(["timing", "tenant", "decrypt", "trail"], shown["jobs"][0]["around"])
        self.sluice("send", "--queue", "orders", "--text", "`ccv", "--attr", "encrypted=xor", "--attr", "tenant=acme", check=True)
        self.sluice("send", "--queue", "orders", "--text", "plain", check=True)
        run = self.start()
        self.outcome(run, "abbw text/plain for acme")
        self.outcome(run, "trail=t")
        self.outcome(run, "it is not encrypted")
        until("both were timed", lambda: run.log().count("left with status") == 2)
        self.assertEqual(0, run.stop(), run.log())
        self.assert_certificate(run, discarded=1, rejected=1)

    def test_what_they_stage_is_committed_with_the_message(self):
        self.write_host("[queues.trail]\n[queues.who]\n")
        self.write_job("who", extra=f'isolation = "{self.isolation}"\n' + around("trail", mark="t", at="stage"), **WHO)
        self.sluice("send", "--queue", "orders", "--text", "stage", check=True)
        run = self.start()
        until("all three are there", lambda: self.stats("trail").get("ready") == 2 and self.stats("who").get("ready") == 1)
        self.assertEqual(0, run.stop(), run.log())
        self.assert_certificate(run, done=1)


class AroundInProcesses(Around):
    isolation = "process"


class AroundBadInput(Case):
    def refused(self, *phrases):
        done = self.sluice("check")
        self.assertEqual(78, done.returncode, done.stdout)
        errors = [line for line in (done.stdout + done.stderr).split("\n") if re.search(r"toml:\d+:\d+: ", line)]
        self.assert_one_line("\n".join(errors), *phrases)

    def test_kinds_and_names_are_checked(self):
        self.write_job("timing", **WHO)
        self.refused(r"work\.toml:3:11: .timing. goes around other handlers and handles no message itself: name it in "
                     r"\[\[job\.around\]\]")
        self.write_job("who", extra=around("who"), **WHO)
        self.refused(r"work\.toml:5:11: .who. handles messages and goes around no other handler", "decrypt, tenant, timing")
        self.write_job("who", extra=around("timming"), **WHO)
        self.refused(r"work\.toml:5:11: no plugin offers the handler .timming.; did you mean .timing.")
        self.write_job("who", extra=around("decrypt"), **WHO)
        self.refused(r"work\.toml:5:11: the handler .decrypt. needs the option .key., .*set it in \[job\.around\.options\]")
        self.write_job("who", extra=around("decrypt", key="k", kez="k"), **WHO)
        self.refused(r"work\.toml:8:1: the handler .decrypt. has no option .kez.; did you mean .key.")
        self.write_job("who", extra=around("decrypt", key=7), **WHO)
        self.refused(r"work\.toml:7:1: the option .key. of the handler .decrypt. must be a string")

    def test_one_call_at_a_time_does_not_go_around_calls_that_overlap(self):
        self.write_job("who", **WHO)
        self.write_job("coroutines", name="work", plugin="kinds", extra=around("trail", mark="t"))
        self.refused(r"work\.toml:5:11: .trail. takes one call at a time, and those of the asynchronous handler .coroutines. "
                     "overlap: make its enter and leave const")

    def test_plugins_tells_them_apart(self):
        self.write_job("who", **WHO)
        shown = self.sluice("plugins", "--output", "text", check=True).stdout
        self.assertIn("  around timing: Says how long each call took.", shown)
        self.assertIn("  handler who", shown)
        handlers = json.loads(self.sluice("plugins", "--json", check=True).stdout)["plugins"][0]["handlers"]
        self.assertEqual({"who": "handler", "timing": "around", "decrypt": "around", "tenant": "around", "trail": "around"},
                         {handler["name"]: handler["kind"] for handler in handlers})

    def test_one_that_crashes_when_it_is_asked_is_refused(self):
        self.write_job("crashes_when_asked")
        self.refused(r"orders\.toml:3:11: no plugin offers the handler .crashes_when_asked.")
        shown = self.sluice("plugins", "--output", "text", check=True).stdout
        self.assertRegex(shown, r"rejected: .*crashes_when_asked\.so.*signal 6")

    def test_dry_run_runs_them_too(self):
        self.write_job("who", extra=around("trail", mark="t", at="retry"), **WHO)
        (message,) = self.send(1)
        shown = self.sluice("dry-run", "--job", "work", message, "--output", "text", check=True)
        self.assertIn("t says so", shown.stdout)


if __name__ == "__main__":
    main()
