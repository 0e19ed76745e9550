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


    def beats(self):
        return {item["s"]["S"]: item for item in self.partition("@hosts")}

    def make_lease_long(self, host):
        """Its heartbeat says from now on that whoever waits for its lease waits for 10 minutes."""
        self.emulator.call("UpdateItem", TableName=TABLE, Key={"p": {"S": "@hosts"}, "s": {"S": host}},
                           UpdateExpression="SET #l = :l", ExpressionAttributeNames={"#l": "l"},
                           ExpressionAttributeValues={":l": {"N": "600000"}})

    def kill_nine(self, run):
        run.process.kill()
        run.process.wait()


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

    def hold_up(self, run, count):
        """`count` messages, of which 4 are at work for longer than the test; their ids, and those of the 4."""
        until("it owns all shards", lambda: self.all_owned(1))
        ids = self.send(count)
        until("four are at work", lambda: self.at_work() == 4)
        running = json.loads(self.sluice("running", "--output", "json", check=True).stdout)
        return ids, {row["message"] for row in running}

    def die_at_work(self, count):
        """A host killed with 4 of `count` messages at work, its lease long; all ids, those of the 4, and its heartbeat."""
        self.counts(sleep="1h", extra="concurrency = 4")
        first = self.start(report="first.json")
        ids, ran = self.hold_up(first, count)
        (dead,) = self.beats()
        self.kill_nine(first)
        self.make_lease_long(dead)
        return ids, ran, dead

    def assert_settled(self, run, ran, held_at_least=0):
        (line,) = [line for line in run.log().splitlines() if "settled what a dead host held" in line]
        self.assertRegex(line, r"died=\"?nothing says why")
        self.assertEqual(len(ran), int(re.search(r"suspects=(\d+)", line)[1]), line)
        self.assertGreaterEqual(int(re.search(r"released=(\d+)", line)[1]), held_at_least, line)
        self.assertIn("unsettled=0", line)
        self.assertNotIn("may have been at work and run alone", run.log(), "it is known what was")

    def test_a_killed_host_is_succeeded_at_once_on_its_machine(self):
        ids, ran, dead = self.die_at_work(60)
        self.counts(extra="concurrency = 4")
        began = time.monotonic()
        second = self.start(report="second.json")
        until("the first message is redelivered", self.worked)
        print(f"first redelivery {time.monotonic() - began:.2f} s after the new host was started", flush=True)
        until("everything is done", lambda: len(self.worked()) >= len(ids))
        until("nothing is left", lambda: self.exact()["total"] == 0)
        self.assertEqual(sorted(ids), sorted(self.worked()), "each once")
        self.assert_settled(second, ran)
        self.assertTrue(self.beats()[dead]["e"]["BOOL"], "all hosts know that it has ended")
        self.assertEqual(0, second.stop(), second.log())
        total = self.assert_certificate(second, claimed=60, done=60)
        self.assertEqual((0, 0), (total["lost"], total["stranded"]), second.log())

    def test_what_a_handler_had_finished_is_not_run_again(self):
        self.write_job("bomb", name="orders", options=f'path = "{self.path("seen")}"\nsleep = "0s"',
                       extra='isolation = "thread"\nconcurrency = 1\n[job.retry]\nmax_attempts = 1\n')
        innocents = self.send(40)
        self.sluice("send", "--queue", "orders", "--id", "the-bomb", "--data", "1", "--attr", "do=abort", check=True)
        innocents += self.send(40)
        first = self.start(report="first.json")
        until("it dies", lambda: first.process.poll() is not None)
        second = self.start(report="second.json")
        until("all are done", lambda: self.exact()["total"] == 0)
        self.assertEqual(0, second.stop(), second.log())
        self.assertEqual(sorted([*innocents, "the-bomb"]), sorted(line.split()[0] for line in self.lines("seen")))
        settled = json.loads(self.sluice("crashes", "--json", check=True).stdout)[0]["settled"]
        self.assertGreater(settled["finished"], 0)
        self.assertEqual(0, settled["unsettled"])

    def test_get_names_the_holder_that_no_record_tells_of(self):
        message = self.send_one()
        self.assertEqual(("", None), tuple(self.shown(message)[name] for name in ("owner", "holder")), "no host is there")
        dead = self.send_one()
        self.sluice("invalid", "orders", dead, check=True)
        self.assertNotIn("held by", self.sluice("get", "orders", dead, "--output", "text", check=True).stdout)
        self.counts(sleep="1h", extra="concurrency = 1")
        run = self.start()
        held = until("it is at work", lambda: (shown := self.shown(message))["holder"] and shown["owner"] and shown)
        self.assertEqual((f"e2e:{run.process.pid}", "counts", True),
                         tuple(held["holder"][name] for name in ("host", "handler", "answers")))
        self.assertEqual("host e2e", held["owner"])
        self.assertRegex(held["part"], r"^shard \d$")
        waits = self.send_one()
        self.assertEqual(("host e2e", None), tuple(self.shown(waits)[name] for name in ("owner", "holder")))
        text = self.sluice("get", "orders", message, "--output", "text", check=True).stdout
        self.assertRegex(text, rf"held by +host e2e:{run.process.pid}, job .*, by shard \d")
        text = self.sluice("get", "orders", waits, "--output", "text", check=True).stdout
        self.assertRegex(text, r"held by +host e2e, by shard \d; nobody tells of a handler")

    def test_only_what_was_at_work_is_suspect(self):
        _, ran, dead = self.die_at_work(60)
        self.sluice("pause", "--queue", "orders")  # says that the dead host has not obeyed yet
        second = self.start(report="second.json")
        until("it owns all shards", lambda: self.all_owned(1) and dead not in self.owners())
        items = [item for shard in range(SHARDS) for item in self.partition(f"orders#{shard}")]
        self.assertEqual(60, len(items), "nothing is lost")
        suspects = [item for item in items if item.get("q", {}).get("N") == "1"]
        self.assertEqual(len(ran), len(suspects))
        self.assertTrue(all("r" not in item or item["r"]["N"] == "0" for item in items), "no attempt is counted")
        self.assertEqual(ran, {self.shown_id(item) for item in suspects})
        self.assertEqual(0, second.stop(), second.log())

    def shown_id(self, item):
        """As a made id is made of its place, or as its sender has said."""
        if "i" in item:
            return item["i"]["S"]
        (found,) = [row["id"] for row in self.listed("--all") if row["id"].startswith(item["s"]["S"])]
        return found

    def test_a_neighbour_with_the_same_state_folder_need_not_wait_either(self):
        self.counts(sleep="1h", extra="concurrency = 2")
        first = self.start(report="first.json")
        second = self.start(report="second.json")
        until("each has its share", lambda: self.all_owned(2))
        hosts = set(self.beats())
        first.kill(signal.SIGSTOP)  # so that its lease can be made long before it is dead for the neighbour
        lived = self.living(second)
        first.process.kill()
        first.process.wait()
        (dead,) = hosts - {lived}
        until("the neighbour owns all shards", lambda: set(self.owners()) == {lived} and self.all_owned(1))
        until("the mark is there", lambda: "e" in self.beats().get(dead, {"e": 1}))
        self.assertIn("e", self.beats()[dead])
        self.assertEqual(0, second.stop(), second.log())

    def living(self, run):
        """The incarnation whose heartbeat still moves, while the other host is stopped."""
        before = {host: item["c"]["N"] for host, item in self.beats().items()}
        moved = until("one heartbeat moves", lambda: [host for host, item in self.beats().items()
                                                      if int(item["c"]["N"]) > int(before[host]) + 1])
        (host,) = moved
        (other,) = set(before) - {host}
        self.make_lease_long(other)
        return host

    def test_a_host_on_another_machine_waits_for_the_lease(self):
        self.counts(sleep="10ms", extra="concurrency = 4")
        first = self.start(report="first.json")
        until("it owns all shards", lambda: self.all_owned(1))
        with open(self.path("host.toml"), encoding="utf-8") as file:
            text = file.read()
        self.write("elsewhere.toml", text.replace('[host]\n', '[host]\nstate_dir = "elsewhere"\n'))
        second = self.start("--config", "elsewhere.toml", report="second.json")
        until("each has its share", lambda: self.all_owned(2))
        ids = self.send(200)
        until("they are at work", lambda: len(self.worked()) > 20)
        self.kill_nine(first)
        began = time.monotonic()
        until("the other one takes all shards", lambda: self.all_owned(1))
        print(f"taken over elsewhere after {time.monotonic() - began:.1f} s", flush=True)
        until("everything is done", lambda: set(self.worked()) == set(ids))
        until("nothing is left", lambda: self.exact()["total"] == 0)
        self.assertIn("was not handed over by", second.log())
        self.assertNotIn("settled what a dead host held", second.log())
        self.assertEqual(0, second.stop(), second.log())

    def test_a_host_with_another_number_of_shards_follows_the_first_one(self):
        self.counts()
        first = self.start(report="first.json").started()
        until("it owns all shards", lambda: self.all_owned(1))
        (said,) = [item for item in self.partition("orders@") if item["s"]["S"] == "shards"]
        self.assertEqual(str(SHARDS), said["n"]["N"])
        with open(self.path("host.toml"), encoding="utf-8") as file:
            text = file.read()
        self.write("other.toml", text.replace(f"shards = {SHARDS}", "shards = 16"))
        second = self.start("--config", "other.toml", report="second.json")
        until("each has its share", lambda: self.all_owned(2))
        until("it says so", lambda: "passes over" in second.log())
        self.assertRegex(second.log(), f"queue 'orders' has {SHARDS} shards, as the item 'shards' in partition 'orders@' .*"
                                       f"not the 16 .*put shards = {SHARDS} under")
        sent = self.sluice("send", "--config", "other.toml", "--queue", "orders", "-", data='"x"\n' * 60, check=True)
        until("all are worked off", lambda: len(self.worked()) == 60)
        self.assertEqual(sorted(sent.stdout.split()), sorted(self.worked()))
        self.assertEqual((0, 0), (first.stop(), second.stop()))

    def test_who_sends_first_says_how_many_shards_there_are(self):
        with open(self.path("host.toml"), encoding="utf-8") as file:
            text = file.read()
        self.write("other.toml", text.replace(f"shards = {SHARDS}", "shards = 64"))
        sent = self.sluice("send", "--config", "other.toml", "--queue", "orders", "-", data='"x"\n' * 60, check=True)
        self.counts()
        run = self.start("--until-empty")
        self.assertEqual(0, run.wait(), run.log())
        self.assertEqual(sorted(sent.stdout.split()), sorted(self.worked()), "also what lies beyond the host's number")

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


CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


class LeasedByBoto3(LeasedCase):
    """The items as docs/run/tables.md has them, by an independent reader and writer."""

    def setUp(self):
        super().setUp()
        try:
            import boto3  # Debian's; absent where only the product is tested.
        except ImportError:
            self.skipTest("SKIPPED: no boto3")
        place = {"endpoint_url": self.emulator.endpoint, "region_name": "eu-west-1", "aws_access_key_id": "test",
                 "aws_secret_access_key": "test"}
        self.table = boto3.resource("dynamodb", **place).Table(TABLE)
        self.client = boto3.client("dynamodb", **place)

    def items(self, partition):
        return [item for item in self.table.scan(ConsistentRead=True)["Items"] if item["p"] == partition]

    def sort_key(self, milliseconds, tail, priority=2):
        text = ""
        for _ in range(10):
            text = CROCKFORD[milliseconds % 32] + text
            milliseconds //= 32
        return str(priority) + text + tail.rjust(16, "0")

    def test_what_it_puts_there_is_worked_off(self):
        now = int(time.time() * 1000)
        puts = {}
        for shard in range(SHARDS):
            for priority in range(4):
                sort = self.sort_key(now, "AB" + CROCKFORD[shard] + CROCKFORD[priority], priority)
                item = {"p": f"orders#{shard}", "s": sort, "b": f"body {shard}"}
                if priority != 2:
                    item["P"] = priority
                if priority == 0:
                    item |= {"g": "group", "a": {"colour": "red"}, "t": "text/x-test", "r": 1}
                self.table.put_item(Item=item)
                puts[sort + "0" + CROCKFORD[shard]] = item
        own = self.sort_key(now, "00000000000000ZZ")
        self.table.put_item(Item={"p": "orders#1", "s": own, "b": b"\x00\x01", "i": "by boto3"})
        self.table.put_item(Item={"p": "orders#id/by boto3", "s": "-", "t": "orders#1", "k": own})
        self.table.put_item(Item={"p": "orders#0", "s": self.sort_key(now + 3_600_000, "LATER"), "b": "later"})
        self.table.put_item(Item={"p": "orders#0", "s": self.sort_key(now, "HIDDEN"), "b": "x", "n": now + 3_600_000, "v": 4})
        shown = self.shown(next(iter(puts)))
        self.assertEqual(("body 0", "critical", "group", {"colour": "red"}, "text/x-test"),
                         (shown["data"], shown["priority"], shown["group"], shown["attributes"], shown["content_type"]))
        self.counts()
        run = self.start()
        until("all that is due is worked off", lambda: len(self.worked()) >= len(puts) + 1)
        self.assertEqual(0, run.stop(), run.log())
        self.assertEqual(sorted([*puts, "by boto3"]), sorted(self.worked()))
        left = [item for item in self.table.scan(ConsistentRead=True)["Items"] if item["p"].startswith("orders#")]
        self.assertEqual(["later", "x"], sorted(item["b"] for item in left), "and its alias went with the message")

    def test_what_owners_and_hosts_write_is_what_the_documents_say(self):
        self.counts()
        run = self.start()
        until("it owns all shards", lambda: self.all_owned(1))
        (beat,) = self.items("@hosts")
        self.assertLessEqual({"p", "s", "c", "l", "w", "m", "o", "z", "x"}, set(beat))
        self.assertLessEqual(set(beat), set("psclqwmgfbozxe") | {"mv"})
        self.assertRegex(beat["s"], r"^e2e/[0-9a-f]{8}$")
        self.assertEqual((LEASE * 1000, {"orders"}), (beat["l"], beat["w"]))
        self.assertTrue(time.time() < beat["x"] < time.time() + 200_000, "DynamoDB's TTL takes it in seconds")
        ttl = self.client.describe_time_to_live(TableName=TABLE)["TimeToLiveDescription"]
        self.assertEqual(("ENABLED", "x"), (ttl["TimeToLiveStatus"], ttl["AttributeName"]))
        owners = {item["s"]: item for item in self.items("orders@")}
        self.assertEqual({"n": SHARDS, "h": SHARDS}, {name: owners["shards"][name] for name in "nh"})
        for shard in range(SHARDS):
            item = owners[f"{shard:04}"]
            self.assertEqual((beat["s"], 1, True), (item["o"], item["e"], item["c"]))
        self.assertEqual(0, run.stop(), run.log())
        (beat,) = self.items("@hosts")
        self.assertTrue(beat["q"], "it says that it leaves")

    def test_what_a_message_gathers_in_its_life_is_what_the_documents_say(self):
        body = "y" * 100
        self.send_one("--group", "g", "--attr", "colour=red", "--unique-key", "k", text=body)
        self.write_job("fails", options='outcome = "retry"\ndelay = "1h"\nreason = "because"')
        run = self.start()
        def retried():
            return [item for item in self.table.scan(ConsistentRead=True)["Items"] if item.get("b") == body and "f" in item]
        (item,) = until("it is retried", retried)
        self.assertEqual(0, run.stop(), run.log())
        self.assertLessEqual(set(item), set("psbtagPvrnyficdzqhuwo"))
        self.assertEqual((1, 2, "g", {"colour": "red"}), (item["r"], item["v"], item["g"], item["a"]))
        self.assertGreater(item["n"], time.time() * 1000 + 3_000_000)
        self.assertNotIn("x", item, "a message has no end that DynamoDB's TTL could bring")


class LeasedByDefault(Case):
    store = "dynamodb"

    def test_a_host_file_that_names_no_table_gets_the_leased_one(self):
        self.write("host.toml", f'[store]\nkind = "dynamodb"\n[dynamodb]\nendpoint = "{self.emulator.endpoint}"\n[queues.go]\ntable = "go-orders"\n')
        self.write_job("counts", name="mails", queue="mails", options=f'path = "{self.path("worked")}"')
        missing = self.sluice("send", "--queue", "mails", "--text", "x")
        self.assertIn("make it with: sluice table create --queue mails", missing.stderr)
        for queue, layout in (("mails", "leased"), ("go", "dynamomq")):
            made = json.loads(self.sluice("table", "create", "--queue", queue, check=True).stdout)
            self.assertEqual(layout, made["layout"])
        self.send(5, queue="mails")
        run = self.start("--until-empty")
        self.assertEqual(0, run.wait(), run.log())
        self.assertEqual(5, len(self.lines("worked")))
        self.assertEqual(["go-orders", "orders", TABLE], sorted(self.emulator.call("ListTables")["TableNames"]))
        other = self.sluice("table", "create", "--queue", "mails", "--layout", "dynamomq")
        self.assertEqual(64, other.returncode)
        self.assertIn('write layout = "dynamomq" there, or name the table with --table', other.stderr)


class LeasedBadInput(LeasedCase):
    """What an operator finds where somebody looks for it; nothing is lost, and no other shard disturbed."""

    def put(self, **item):
        self.emulator.call("PutItem", TableName=TABLE, Item=item)

    def check(self):
        done = self.sluice("table", "check", "--queue", "orders", "--output", "text")
        return done.returncode, done.stdout + done.stderr

    def test_a_table_of_the_other_layout_is_named_by_the_host_the_sender_and_the_check(self):
        with open(self.path("host.toml"), encoding="utf-8") as file:
            text = file.read()
        self.write("other.toml", text.replace('layout = "leased"\n', "").replace(f"shards = {SHARDS}\n", "")
                   .replace("[queues.orders]\n", f'[queues.orders]\ntable = "{TABLE}"\n'))
        self.counts()
        for words in (("send", "--queue", "orders", "--text", "x"), ("table", "check", "--queue", "orders"),
                      ("run", "--until-empty")):
            done = self.sluice(*words, "--config", "other.toml")
            self.assertNotEqual(0, done.returncode, words)
            self.assertRegex(done.stdout + done.stderr, "leased|no DynamoMQ table|sluice table check", words)
        checked = self.sluice("table", "check", "--config", "other.toml", "--queue", "orders", "--output", "text")
        self.assertIn('write layout = "leased" for the queue', checked.stdout)
        self.assertEqual(0, self.exact()["total"])

    def test_a_number_of_shards_that_cannot_be_is_named_by_all(self):
        ids = self.send(20)
        self.counts()
        for wrong in ("0", "10000"):
            self.put(p={"S": "orders@"}, s={"S": "shards"}, n={"N": wrong})
            code, text = self.check()
            self.assertEqual(1, code)
            says = f"queue 'orders' has {wrong} shards, and a queue has 1 to 1024; put the number right"
            self.assertIn(says, text)
            sent = self.sluice("send", "--queue", "orders", "--text", "x")
            self.assertEqual(1, sent.returncode)
            self.assert_one_line(sent.stderr, says)
            run = self.start(report="odd.json")
            self.assertEqual(78, run.wait(), run.log())
            self.assertIn(says, run.log())
            refused = self.write_odd_host(wrong)
            self.assertEqual(78, refused.returncode, refused.stderr)
            self.assertRegex(refused.stderr, r"odd.toml:\d+:\d+: .*shards")
        self.put(p={"S": "orders@"}, s={"S": "shards"}, n={"N": str(SHARDS)})
        run = self.start()
        until("what is there is worked off", lambda: len(self.worked()) == 20)
        self.put(p={"S": "orders@"}, s={"S": "shards"}, n={"N": "0"})
        until("a host that runs says so", lambda: "shards, and a queue has 1 to 1024" in run.log())
        self.assertTrue(self.all_owned(1), "and keeps what it has")
        self.put(p={"S": "orders@"}, s={"S": "shards"}, n={"N": str(SHARDS)})
        ids += self.send(20)
        until("it goes on", lambda: len(self.worked()) == 40)
        self.assertEqual(sorted(ids), sorted(self.worked()))
        self.assertEqual(0, run.stop(), run.log())

    def write_odd_host(self, shards):
        with open(self.path("host.toml"), encoding="utf-8") as file:
            text = file.read()
        self.write("odd.toml", text.replace(f"shards = {SHARDS}", f"shards = {shards}"))
        return self.sluice("run", "--until-empty", "--config", "odd.toml")

    def test_half_made_foreign_and_future_items_are_named_and_stop_nothing(self):
        self.put(p={"S": "orders@"}, s={"S": "0001"}, c={"BOOL": True})
        self.put(p={"S": "orders@"}, s={"S": "read me"}, note={"S": "a person's"})
        self.put(p={"S": "@hosts"}, s={"S": "half/1"}, c={"N": "1"})
        self.put(p={"S": "@hosts"}, s={"S": "future/1"}, c={"N": "1"}, l={"N": "1000"}, z={"N": "99999999999999"})
        self.put(p={"S": "orders#3"}, s={"S": "2nonsense"}, b={"S": "x"})
        ids = self.send(60)
        _, text = self.check()
        for named in ("0001", "read me", "half/1", "future/1", "nothing of this layout"):
            self.assertIn(named, text)
        self.counts()
        run = self.start()
        until("all are worked off", lambda: len(self.worked()) == 60)
        self.assertEqual(sorted(ids), sorted(self.worked()))
        for named in ("'0001' in partition 'orders@' is only half there", "'read me' in partition 'orders@' is none of ours",
                      "the heartbeat 'half/1'"):
            self.assertIn(named, run.log())
        self.assertEqual(0, run.stop(), run.log())
        self.assertTrue(self.partition("orders#3"), "what is none of ours stays")

    def test_two_hosts_of_one_name_are_two_and_a_check_says_so(self):
        self.counts(sleep="5ms")
        one = self.start(report="one.json")
        two = self.start(report="two.json")
        until("each has its share", lambda: self.all_owned(2))
        ids = self.send(100)
        self.assertRegex(self.check()[1], "host.*'e2e'")
        until("all are worked off", lambda: len(self.worked()) >= 100)
        self.assertEqual((0, 0), (one.stop(), two.stop()))
        self.assertEqual(sorted(ids), sorted(self.worked()))

    def test_a_host_that_stands_still_longer_than_its_lease_takes_its_shards_anew(self):
        self.counts(sleep="1ms")
        run = self.start().started()
        until("it owns all shards", lambda: self.all_owned(1))
        run.kill(signal.SIGSTOP)
        stopped = time.monotonic()
        until("its lease has run out", lambda: time.monotonic() > stopped + LEASE + 2)
        ids = self.send(60)
        run.kill(signal.SIGCONT)
        until("it says so", lambda: re.search("what this host held of it (is lost|counts as lost)", run.log()))
        until("all are worked off", lambda: len(self.worked()) >= 60)
        self.assertEqual(sorted(ids), sorted(self.worked()))
        self.assertEqual(0, run.stop(), run.log())


if __name__ == "__main__":
    main()
