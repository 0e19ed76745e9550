#!/usr/bin/env python3
"""What work costs, on both stores: /metrics, /scale, the drain certificate, `stats --cost` and `cost` tell the same of tenants."""

import json
import os
import re
import unittest

import yaml

from metrics_test import samples
from support import SOURCE, Case, free_port, http, main, until

TENANTS = {"acme": 12, "globex": 4, None: 2}
COUNT = sum(TENANTS.values())
ATTRIBUTE = '[cost]\nattribute = "tenant"\n'


class CostSqlite(Case):
    billed = False

    def setUp(self):
        super().setUp()
        self.port = free_port()
        self.write_host(extra=ATTRIBUTE, http_port=self.port)
        self.write_job("exec", name="billing", options='command = ["true"]')

    def send_all(self):
        for tenant, count in TENANTS.items():
            attributes = ["--attr", f"tenant={tenant}"] if tenant else []
            self.sluice("send", "--queue", "orders", *attributes, "-", data='"x"\n' * count, check=True)

    def series(self, name, **labels):
        return self.metrics.get((name, frozenset(labels.items())))

    def worked_off(self):
        self.metrics = samples(http(self.port, "/metrics")[1])
        return self.series("sluice_settled_total", ending="done", sluice_job="billing", queue="orders") == COUNT

    def costs(self):
        found = json.loads(self.sluice("cost", "--queue", "orders", "--json", check=True).stdout)
        return found if found["messages"] == COUNT else None

    def test_everybody_tells_the_same(self):
        self.send_all()
        run = self.start().started()
        until("all is done", self.worked_off)
        job = {"sluice_job": "billing", "queue": "orders"}
        self.assertEqual(COUNT, self.series("sluice_cost_messages_total", **job))
        units = self.series("sluice_cost_write_units_total", **job)
        # A claim and a deletion, each in the table and in its index.
        self.assertEqual(4 * COUNT if self.billed else 0, units)
        by_value = {value: self.series("sluice_attribute_write_units_total", attribute="tenant", value=value)
                    for value in ("acme", "globex", "(none)")}
        self.assertEqual([round(units * count / COUNT, 6) for count in TENANTS.values()],
                         [round(number, 6) for number in by_value.values()])
        money = self.series("sluice_cost_money_total", currency="USD", **job)
        self.assertEqual(self.billed, money > 0)
        costs = until("the host's record tells it", self.costs)
        row = next(row for row in costs["jobs"] if row["job"] == "billing")
        self.assertEqual([units, not self.billed], [row["write_units"], row["embedded"]])
        self.assertEqual("2026-11-01", costs["as_of"])
        self.assertEqual({"acme", "globex", "(none)"}, {value["value"] for value in costs["values"]} - {"(idle)"})
        layouts = {layout["layout"]: layout for layout in costs["layouts"]}
        self.assertEqual([6.0 * COUNT, 2.0 * COUNT, 0], [layouts[name]["write_units"] for name in ("dynamomq", "leased", "sqlite")])
        stats = json.loads(self.sluice("stats", "--queue", "orders", "--cost", "--exact", check=True).stdout)
        self.assertEqual(COUNT, stats["cost"]["messages"])
        self.assertEqual(0, stats["age_seconds"])
        text = self.sluice("cost", "--output", "text", check=True).stdout
        for word in ("billing", "acme", "leased", "2026-11-01") + (() if self.billed else ("embedded",)):
            self.assertIn(word, text)
        self.assertEqual(0, run.stop(), run.log())
        self.check_certificate(run, units)

    def check_certificate(self, run, units):
        report = run.report()
        self.assertEqual(self.billed, "cost" in report)
        if not self.billed:
            return
        row = next(row for row in report["cost"]["jobs"] if row["job"] == "billing")
        self.assertEqual([COUNT, units], [row["messages"], row["write_units"]])
        whole = report["dynamodb"]
        self.assertAlmostEqual(whole["write_units"], sum(row["write_units"] for row in report["cost"]["jobs"]), 1)
        self.assertAlmostEqual(whole["requests"], sum(row["requests"] for row in report["cost"]["jobs"]), 1)
        self.assertIn("billing on orders: ", run.log())
        self.assertIn("tenant acme: ", run.log())

    def test_an_autoscaler_is_answered(self):
        self.write_job("exec", name="billing", options='command = ["sleep", "600"]', extra="concurrency = 2")
        self.send(5)
        self.start().started()
        answer = until("it has counted", lambda: (lambda got: got[0] == 200 and got[1])(http(self.port, "/scale/orders")))
        scale = json.loads(answer)
        self.assertEqual([5, 2, "orders"], [scale["backlog"], scale["workers"], scale["queue"]])
        self.assertEqual(scale["backlog"], scale["ready"] + scale["in_flight"])
        self.assertGreaterEqual(scale["age_seconds"], 0)
        status, text = http(self.port, "/scale/elsewhere")
        self.assertEqual([404, ["orders"]], [status, json.loads(text)["queues"]])
        self.metrics = samples(http(self.port, "/metrics")[1])
        self.assertEqual(5, self.series("sluice_queue_backlog", queue="orders"))
        with open(os.path.join(SOURCE, "docs", "run", "metrics.md"), encoding="utf-8") as page:
            shown = json.loads(re.search(r"```json\n(.*?)```", page.read(), re.S).group(1))
        self.assertEqual(list(shown), list(scale), "docs/run/metrics.md shows another answer")


class CostDynamo(CostSqlite):
    store = "dynamodb"
    billed = True

    def test_a_budget_holds_a_job_back_and_says_so(self):
        self.write_host(extra="max_write_units = 4\n" + ATTRIBUTE, http_port=self.port)
        self.send(60)
        run = self.start().started()
        until("it waits", lambda: self.held() and self.series("sluice_budget_held", queue="orders") == 1)
        # In the host's next record, half a minute after its first.
        until("jobs say so", lambda: "held by budget" in self.sluice("jobs", "--output", "text", check=True).stdout)
        self.assertEqual(4, self.series("sluice_budget_units_per_second", queue="orders", unit="write"))
        until("all is done all the same",
              lambda: self.held() and self.series("sluice_settled_total", ending="done", sluice_job="billing", queue="orders") == 60)
        self.assertGreater(self.series("sluice_budget_wait_seconds_total", queue="orders"), 1)
        self.assertEqual(0, run.stop(), run.log())
        self.assert_certificate(run, claimed=60, done=60)

    def held(self):
        self.metrics = samples(http(self.port, "/metrics")[1])
        return True


class Keda(unittest.TestCase):
    def test_the_example_asks_for_what_there_is(self):
        with open(os.path.join(SOURCE, "config", "examples", "keda.yaml"), encoding="utf-8") as file:
            documents = list(yaml.safe_load_all(file))
        with open(os.path.join(SOURCE, "config", "examples", "kubernetes.yaml"), encoding="utf-8") as file:
            deployments = [one for one in yaml.safe_load_all(file) if one["kind"] == "Deployment"]
        service, by_path, by_prometheus = documents
        self.assertEqual(["Service", "ScaledObject", "ScaledObject"], [one["kind"] for one in documents])
        labels = deployments[0]["spec"]["template"]["metadata"]["labels"]
        self.assertEqual(labels, service["spec"]["selector"])
        for scaled in (by_path, by_prometheus):
            self.assertEqual(deployments[0]["metadata"]["name"], scaled["spec"]["scaleTargetRef"]["name"])
            self.assertGreaterEqual(scaled["spec"]["minReplicaCount"], 1)
        trigger = by_path["spec"]["triggers"][0]
        self.assertEqual("metrics-api", trigger["type"])
        port = service["spec"]["ports"][0]["port"]
        self.assertRegex(trigger["metadata"]["url"], rf"^http://{service['metadata']['name']}\..*:{port}/scale/orders$")
        with open(os.path.join(SOURCE, "docs", "run", "metrics.md"), encoding="utf-8") as page:
            text = page.read()
        shown = json.loads(re.search(r"```json\n(.*?)```", text, re.S).group(1))
        self.assertIn(trigger["metadata"]["valueLocation"], shown)
        query = by_prometheus["spec"]["triggers"][0]["metadata"]["query"]
        names = set(re.findall(r"sluice_\w+", query))
        self.assertEqual({"sluice_queue_backlog", "sluice_queue_sample_age_seconds"}, names)
        self.assertTrue(all(f"`{name}" in text for name in names))


if __name__ == "__main__":
    main()
