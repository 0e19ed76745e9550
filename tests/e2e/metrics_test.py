#!/usr/bin/env python3
"""/metrics beside the drain certificate: every figure that is promised is there, with its labels, and adds up."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import unittest

from support import SOURCE, TABLE, Case, free_port, http, main, until

# What a body asks of the command that works on it.
SCRIPT = 'case "$(cat)" in *retry*) exit 75;; *reject*) exit 65;; *discard*) exit 3;; *snooze*) exit 4;; esac'


def samples(text):
    """{(name, frozenset of labels): value}"""
    found = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            series, value = line.rsplit(" ", 1)
            name, _, labels = series.partition("{")
            pairs = re.findall(r'([a-z_]+)="((?:[^"\\]|\\.)*)"', labels)
            found[name, frozenset(pairs)] = float(value)
    return found


class MetricsSqlite(Case):
    bodies = ["ok"] * 5 + ["retry"] * 2 + ["reject", "discard", "snooze"]

    def value(self, name, **labels):
        return self.metrics.get((name, frozenset(labels.items())))

    def scrape(self):
        self.metrics = samples(http(self.port, "/metrics")[1])
        return self.metrics

    def worked_off(self):
        """Whether all but the snoozed one have come to an end, as the queue itself says."""
        self.scrape()
        depth = {state: self.value("sluice_queue_depth", queue="orders", state=state)
                 for state in ("ready", "in_flight", "delayed", "dlq")}
        return depth == {"ready": 0, "in_flight": 0, "delayed": 1, "dlq": 3}

    def work(self):
        self.port = free_port()
        self.write_host(http_port=self.port)
        options = f'shell = true\ncommand = [{json.dumps(SCRIPT)}]\n[job.options.exit_codes]\n3 = "discard"\n4 = "snooze 1h"'
        self.write_job("exec", name="worker", options=options,
                       extra='[job.retry]\nmax_attempts = 2\nbase = "1ms"')
        lines = "".join(json.dumps(body) + "\n" for body in self.bodies)
        self.sluice("send", "--queue", "orders", "-", data=lines, check=True)
        self.run_ = self.start()
        until("all has been worked on", self.worked_off)
        return self.run_

    def test_figures_are_those_of_the_certificate(self):
        run = self.work()
        job = {"sluice_job": "worker", "queue": "orders"}
        self.assertEqual(12, self.value("sluice_claims_total", **job))
        self.assertEqual(12, self.value("sluice_attempts_total", **job))
        outcomes = {name: self.value("sluice_outcomes_total", outcome=name, **job)
                    for name in ("done", "retry", "snooze", "reject", "discard", "release", "fault", "exhausted")}
        self.assertEqual({"done": 5, "retry": 4, "snooze": 1, "reject": 1, "discard": 1, "release": 0, "fault": 0,
                          "exhausted": 0}, outcomes)
        self.assertEqual(12, self.value("sluice_handler_duration_seconds_count", **job))
        self.assertEqual(12, self.value("sluice_handler_duration_seconds_bucket", le="+Inf", **job))
        self.assertGreater(self.value("sluice_handler_duration_seconds_sum", **job), 0)
        for name in ("sluice_settle_failures_total", "sluice_lost_receipts_total", "sluice_claim_failures_total",
                     "sluice_in_flight"):
            self.assertEqual(0, self.value(name, **job), name)
        self.check_dynamodb()
        settled = {name: self.value("sluice_settled_total", ending=name, **job)
                   for name in ("done", "retried", "snoozed", "rejected", "discarded", "released")}
        self.assertEqual({"done": 5, "retried": 2, "snoozed": 1, "rejected": 3, "discarded": 1, "released": 0}, settled)
        self.assertEqual(8, self.value("sluice_concurrency", **job))
        self.assertEqual(0, self.value("sluice_stuck_handlers", **job))
        self.assertEqual(0, self.value("sluice_timeouts_total", **job))
        self.assertEqual(0, run.stop(), run.log())
        self.assert_certificate(run, claimed=12, done=5, retried=2, snoozed=1, rejected=3, discarded=1)
        # The last attempt of a message is not announced as one more.
        self.assertEqual(2, run.log().count("to be retried"), run.log())
        self.assertEqual(2, run.log().count("the message goes to the DLQ"), run.log())

    def check_dynamodb(self):
        self.assertFalse([name for name, _ in self.metrics if name.startswith("sluice_dynamodb")])

    def test_in_flight_and_lost_receipts(self):
        self.port = free_port()
        self.write_host(http_port=self.port, visibility="1s")
        self.write_job("sleeper", options='duration = "1h"\nignore_stop = false', extra="concurrency = 1")
        (message,) = self.send(1)
        run = self.start()
        job = {"sluice_job": "orders", "queue": "orders"}
        until("it is held", lambda: self.scrape() and self.value("sluice_in_flight", **job) == 1)
        self.sluice("delete", "--queue", "orders", "--id", message, "--force", check=True)
        until("the receipt is lost", lambda: self.scrape() and self.value("sluice_lost_receipts_total", **job) == 1)
        self.assertEqual(0, run.stop(signal.SIGTERM), run.log())
        self.assert_certificate(run, claimed=1, lost=1)


class MetricsDynamo(MetricsSqlite):
    store = "dynamodb"

    def write_host(self, **settings):
        # The queue's name is not the table's.
        super().write_host(extra=f'table = "{TABLE}-table"\n', **settings)

    def check_dynamodb(self):
        reads = {"operation": "Query", "queue": "orders", "table": TABLE + "-table"}
        writes = {**reads, "operation": "BatchExecuteStatement"}
        for name in ("requests", "read_units"):
            self.assertGreater(self.value(f"sluice_dynamodb_{name}_total", **reads), 0, name)
        for name in ("requests", "write_units"):
            self.assertGreater(self.value(f"sluice_dynamodb_{name}_total", **writes), 0, name)
        # 12 claims and as many settlements, each an index entry too; three of them move to the DLQ, one more each.
        self.assertGreaterEqual(self.value("sluice_dynamodb_write_units_total", **writes), 48)
        self.assertEqual(0, self.value("sluice_dynamodb_throttles_total", **writes))

    def test_errors_are_counted_by_kind(self):
        run = self.work()
        self.emulator.stop()
        until("an error is counted", lambda: [
            labels for (name, labels), value in self.scrape().items()
            if name == "sluice_dynamodb_errors_total" and value > 0 and ("queue", "orders") in labels
            and ("error", "transport") in labels])
        until("a failed claim is counted",
              lambda: self.scrape() and self.value("sluice_claim_failures_total", sluice_job="worker", queue="orders") > 0)
        self.check_documentation()
        self.assertEqual(0, run.stop(), run.log())

    def check_documentation(self):
        """The page names every series there is, and no other."""
        with open(os.path.join(SOURCE, "docs", "run", "metrics.md"), encoding="utf-8") as page:
            documented = set(re.findall(r"`(sluice_\w+)", page.read())) - {"sluice_job"}
        shown = {re.sub("_(bucket|count|sum)$", "", name) for name, _ in self.metrics if name.startswith("sluice_")}
        # Hosts that have senders, hosts that are woken, hosts of outboxes, and handlers with metrics show these: telemetry_test,
        # wake_test, outbox_test, plugin_features_test.
        others = ("sluice_sender_", "sluice_wake_", "sluice_outbox_", "sluice_plugin_", "sluice_metrics_")
        shown |= {name for name in documented if name.startswith(others)}
        # And those that tell an attribute apart or have a budget these: cost_test.
        shown |= {name for name in documented if name.startswith(("sluice_attribute_", "sluice_budget_"))}
        self.assertEqual(documented, shown)
        for name in ("alerts.yml", "grafana.json"):
            with open(os.path.join(SOURCE, "docs", "run", name), encoding="utf-8") as file:
                used = {re.sub("_(bucket|count|sum)$", "", series) for series in re.findall(r"sluice_\w+", file.read())}
            self.assertEqual(set(), used - shown - {"sluice_job"}, name + " shows what no host has")
            self.assertIn("sluice_queue_oldest_seconds", used, name)


class Dashboards(unittest.TestCase):
    def test_promtool_reads_the_alerts(self):
        if shutil.which("promtool") is None:
            self.skipTest("promtool is not installed (Debian package prometheus): the alerts' expressions are not checked")
        done = subprocess.run(["promtool", "check", "rules", os.path.join(SOURCE, "docs", "run", "alerts.yml")],
                              capture_output=True, text=True, check=False)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)

    def test_every_alert_says_what_to_look_at(self):
        with open(os.path.join(SOURCE, "docs", "run", "alerts.yml"), encoding="utf-8") as file:
            rules = file.read().split("- alert: ")[1:]
        self.assertGreaterEqual(len(rules), 8)
        for rule in rules:
            for part in ("expr: ", "for: ", "severity: ", "summary: "):
                self.assertIn(part, rule)

    def test_the_dashboard_is_one(self):
        with open(os.path.join(SOURCE, "docs", "run", "grafana.json"), encoding="utf-8") as file:
            dashboard = json.load(file)
        self.assertGreaterEqual(len(dashboard["panels"]), 12)
        ids = [panel["id"] for panel in dashboard["panels"]]
        self.assertEqual(sorted(set(ids)), ids)
        for panel in dashboard["panels"]:
            self.assertTrue(panel["targets"], panel["title"])
            self.assertTrue(all(target["expr"].count("(") == target["expr"].count(")") for target in panel["targets"]))


if __name__ == "__main__":
    sys.exit(main())
