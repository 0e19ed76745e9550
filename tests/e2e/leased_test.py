#!/usr/bin/env python3
"""Queues of the leased layout: real hosts that own shards of a table on the DynamoDB emulator."""

import json
import re
import signal
import time
import unittest

from support import Case, free_port, http as get, main, until

SECRET = "0123456789abcdef0123456789abcdef"
SHARDS = 4
TABLE = "sluice-queues"
LEASE = 10  # of a host's shards, s


class LeasedCase(Case):
    store = "dynamodb"

    def write_host(self, extra="", **words):
        super().write_host(f'layout = "leased"\nshards = {SHARDS}\n' + extra, **words)

    def counts(self, sleep="0s", extra=""):
        self.write_job("counts", options=f'path = "{self.path("worked")}"\nsleep = "{sleep}"', extra=extra)

    def worked(self):
        return self.lines("worked")

    def send_one(self, *words, text="hello"):
        return self.sluice("send", "--queue", "orders", "--text", text, *words, check=True).stdout.strip()

    def shown(self, identity):
        return json.loads(self.sluice("get", "--queue", "orders", "--id", identity, check=True).stdout)

    def listed(self, *words):
        return json.loads(self.sluice("ls", "--queue", "orders", "--json", *words, check=True).stdout)["statuses"]

    def exact(self):
        return json.loads(self.sluice("stats", "--queue", "orders", "--exact", check=True).stdout)

    def partition(self, name):
        found = self.emulator.call("Query", TableName=TABLE, KeyConditionExpression="p = :p", ConsistentRead=True,
                                   ExpressionAttributeValues={":p": {"S": name}})
        return found["Items"]

    def owners(self):
        """Who owns how many shards of the standard half."""
        owned = {}
        for item in self.partition("orders@"):
            if item["s"]["S"] != "shards" and item.get("o", {}).get("S"):
                owned[item["o"]["S"]] = owned.get(item["o"]["S"], 0) + 1
        return owned

    def all_owned(self, hosts):
        owned = self.owners()
        return len(owned) == hosts and sum(owned.values()) == SHARDS


class LeasedCommands(LeasedCase):
    def test_the_table_is_made_checked_and_described(self):
        again = json.loads(self.sluice("table", "create", "--layout", "leased", check=True).stdout)
        self.assertFalse(again["created"])
        checked = json.loads(self.sluice("table", "check", "--queue", "orders", check=True).stdout)
        self.assertTrue(checked["ok"], checked)
        self.assertEqual("leased", checked["layout"])
        described = json.loads(self.sluice("table", "describe", "--queue", "orders", check=True).stdout)
        self.assertEqual(("p", "s", []), (described["hash_key"], described["range_key"], described["indexes"]))

    def test_messages_are_sent_shown_changed_and_removed(self):
        made = self.send_one()
        self.assertEqual("mine", self.send_one("--id", "mine", text="own"))
        self.assertIn("already", self.sluice("send", "--queue", "orders", "--id", "mine", "--text", "again").stderr)
        grouped = self.send_one("--group", "g", "--priority", "high")
        later = self.send_one("--delay", "1h")
        stats = self.stats()
        self.assertEqual((3, 1, 0), (stats["ready"], stats["delayed"], stats["in_flight"]), stats)
        self.assertEqual({made, "mine", grouped, later}, {row["id"] for row in self.listed()})
        self.assertEqual("hello", self.shown(made)["data"])
        self.assertEqual("own", self.shown("mine")["data"])
        self.sluice("edit", "--queue", "orders", "--id", "mine", "--set", "data=other", check=True)
        self.assertEqual("other", self.shown("mine")["data"])
        self.sluice("delete", "--queue", "orders", "--id", made, check=True)
        self.assertNotEqual(0, self.sluice("get", "--queue", "orders", "--id", made).returncode)
        self.sluice("purge", "--queue", "orders", "--yes", check=True)
        self.assertEqual(0, self.exact()["total"])
        self.assertEqual([], self.partition("orders#id/mine"), "its alias goes with it")

    def test_a_message_is_received_where_no_host_is(self):
        identity = self.send_one()
        taken = json.loads(self.sluice("receive", "--queue", "orders", check=True).stdout)
        self.assertEqual(identity, taken["id"])
        self.assertEqual(1, self.sluice("receive", "--queue", "orders").returncode, "it is hidden")
        self.sluice("fail", "--queue", "orders", "--id", identity, check=True)

    def test_a_queue_is_copied_and_is_the_same(self):
        self.send(120)
        self.send_one("--id", "mine", "--group", "g")
        out = self.sluice("export", "--queue", "orders", "--both", check=True).stdout
        before = sorted(out.splitlines())
        self.sluice("purge", "--queue", "orders", "--yes", check=True)
        self.write("orders.jsonl", out)
        self.sluice("import", "--queue", "orders", "--file", "orders.jsonl", check=True)
        after = sorted(self.sluice("export", "--queue", "orders", "--both", check=True).stdout.splitlines())
        self.assertEqual(before, after)

    def test_boto3_finds_what_the_documents_say(self):
        try:
            import boto3  # Debian's; absent where only the product is tested.
        except ImportError:
            self.skipTest("SKIPPED: no boto3")
        body = "x" * 500
        made = self.send_one(text=body)
        self.send_one("--id", "mine", "--group", "g", "--priority", "high")
        table = boto3.resource("dynamodb", endpoint_url=self.emulator.endpoint, region_name="eu-west-1",
                               aws_access_key_id="test", aws_secret_access_key="test").Table(TABLE)
        items = table.scan(ConsistentRead=True)["Items"]
        (plain,) = [item for item in items if item.get("b") == body]
        self.assertEqual({"p", "s", "b"}, set(plain))
        self.assertRegex(plain["p"], r"^orders#[0-3]$")
        self.assertRegex(plain["s"], r"^2[0-9A-HJKMNP-TV-Z]{26}$")
        self.assertTrue(made.startswith(plain["s"]))
        overhead = sum(len(name) + len(plain[name]) for name in plain) - len(body)
        self.assertLessEqual(overhead, 40)
        (own,) = [item for item in items if item.get("i") == "mine"]
        self.assertEqual(("1", "g"), (own["s"][0], own["g"]))
        (alias,) = [item for item in items if item["p"] == "orders#id/mine"]
        self.assertEqual(("-", own["p"], own["s"]), (alias["s"], alias["t"], alias["k"]))


class LeasedHosts(LeasedCase):
    def test_one_host_works_a_queue_off_and_leaves_nothing_behind(self):
        self.counts()
        ids = self.send(300) + [self.send_one("--id", "mine"), self.send_one("--group", "g")]
        run = self.start("--until-empty")
        self.assertEqual(0, run.wait(), run.log())
        self.assertEqual(sorted(ids), sorted(self.worked()))
        self.assert_certificate(run, claimed=302, done=302)
        self.assertEqual({}, self.owners(), "its shards are nobody's")
        self.assertEqual(0, self.exact()["total"])

    def test_two_hosts_share_the_shards_and_nothing_is_handled_twice(self):
        self.counts(sleep="5ms")
        ids = self.send(400)
        one = self.start("--until-empty", report="one.json")
        two = self.start("--until-empty", report="two.json")
        self.assertEqual((0, 0), (one.wait(), two.wait()), one.log() + two.log())
        self.assertEqual(sorted(ids), sorted(self.worked()))
        self.assertEqual(400, one.report()["total"]["done"] + two.report()["total"]["done"])

    def test_a_host_that_comes_and_one_that_goes_under_load_hand_over(self):
        self.counts(sleep="5ms", extra="concurrency = 4")
        ids = self.send(300)
        first = self.start(report="first.json")
        until("it owns all shards", lambda: self.all_owned(1))
        second = self.start(report="second.json")
        until("each has its share", lambda: self.all_owned(2))
        ids += self.send(300)
        self.assertEqual(0, first.stop(), first.log())
        ids += self.send(100)
        until("everything is done", lambda: len(self.worked()) >= len(ids))
        until("nothing is left", lambda: self.exact()["total"] == 0)
        self.assertEqual(0, second.stop(), second.log())
        self.assertEqual(sorted(ids), sorted(self.worked()), "each once")
        for run in (first, second):
            total = self.assert_certificate(run)
            self.assertEqual((0, 0), (total["lost"], total["stranded"]), run.log())
        self.assertEqual({}, self.owners())

    def test_what_a_killed_host_had_comes_again_within_its_lease(self):
        self.counts(sleep="10ms", extra="concurrency = 4")
        first = self.start(report="first.json")
        second = self.start(report="second.json")
        until("each has its share", lambda: self.all_owned(2))
        ids = self.send(400)
        until("they are at work", lambda: len(self.worked()) > 20)
        first.process.kill()
        first.process.wait()
        began = time.monotonic()
        until("the other one takes all shards", lambda: self.all_owned(1))
        taken = time.monotonic() - began
        until("everything is done", lambda: set(self.worked()) == set(ids))
        until("nothing is left", lambda: self.exact()["total"] == 0)
        self.assertEqual(0, second.stop(), second.log())
        total = self.assert_certificate(second)
        self.assertEqual((0, 0), (total["lost"], total["stranded"]), second.log())
        print(f"taken over after {taken:.1f} s", flush=True)

    def test_stats_beside_hosts_are_what_they_say_for_two_reads(self):
        self.counts()
        self.start()
        until("it owns all shards", lambda: self.all_owned(1))
        later = [self.send_one("--delay", "1h") for _ in range(3)]
        until("the host tells of them", lambda: self.stats()["delayed"] == 3 and self.stats()["age_seconds"] > 0)
        said = self.stats()
        self.assertEqual((0, 3, 0), (said["ready"], said["delayed"], said["dlq"]), said)
        exact = self.exact()
        self.assertEqual(0, exact["age_seconds"])
        self.assertEqual(sorted(later), sorted(exact["first_100_IDs_in_queue"]))
        text = self.sluice("stats", "--queue", "orders", "--output", "text", check=True).stdout
        self.assertRegex(text, r"orders as it was \S+ ago; --exact counts")

    def test_nothing_is_received_beside_hosts_that_own_all_shards(self):
        self.counts()
        run = self.start()
        until("it owns all shards", lambda: self.all_owned(1))
        self.sluice("pause", "--queue", "orders", check=True)
        until("it has paused", lambda: "paus" in run.log())
        identity = self.send_one()
        received = self.sluice("receive", "--queue", "orders")
        self.assertEqual(1, received.returncode, received.stdout)
        self.assertEqual(0, run.stop(), run.log())
        self.assertEqual(identity, json.loads(self.sluice("receive", "--queue", "orders", check=True).stdout)["id"])

    def test_dead_letters_come_back(self):
        self.write_job("fails", options='outcome = "reject"\nreason = "because"')
        ids = self.send(20)
        self.assertEqual(0, self.start("--until-empty").wait())
        self.assertEqual(20, self.stats()["dlq"])
        self.assertEqual(set(ids), {row["id"] for row in self.listed("--dlq", "--all")})
        self.sluice("redrive", "--queue", "orders", "--all", "--yes", check=True)
        self.counts()
        run = self.start("--until-empty")
        self.assertEqual(0, run.wait(), run.log())
        self.assertEqual(sorted(ids), sorted(self.worked()))

    def test_a_host_is_rung_by_who_sends(self):
        port = free_port()
        self.write_host(f'[wake]\nsecret = "{SECRET}"\n')
        with open(self.path("host.toml"), encoding="utf-8") as file:
            self.write("sender.toml", file.read())
        self.write_host(f'[wake]\nlisten = "127.0.0.1:0"\nsecret = "{SECRET}"\n', http_port=port)
        self.counts()
        run = self.start()
        def bell():
            return [item["b"]["S"] for item in self.partition("@hosts") if "b" in item]
        until("its heartbeat says where it listens", bell)
        self.assertRegex(bell()[0], r"^127\.0\.0\.1:\d+$")
        self.sluice("send", "--queue", "orders", "--config", "sender.toml", "--text", "x", check=True)
        until("it is rung", lambda: re.search(r'datagrams_total\{result="rung"\} [1-9]', get(port, "/metrics")[1]))
        until("it is handled", lambda: len(self.worked()) == 1)
        self.assertEqual(0, run.stop(), run.log())


if __name__ == "__main__":
    main()
