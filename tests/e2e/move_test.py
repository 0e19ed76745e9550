#!/usr/bin/env python3
"""A live queue is carried to another store while producers send, hosts work on both sides, and the mover is killed."""

import json
import signal
import subprocess
import threading

from support import SLUICE, Case, main, until

KILLS = 4
LEASED = 'layout = "leased"\nshards = 4\n'


class MoveCase(Case):
    """`orders` lies in the default store, `orders2` in the other one."""

    def setUp(self):
        if self.needs_tables:
            self.tables = self.start_tables()
            self.addCleanup(self.tables.stop)
        super().setUp()

    needs_tables = True

    def table_store(self, heading):
        return f'[{heading}]\nkind = "dynamodb"\n' + self.place_of_tables()

    def place_of_tables(self):
        return f'region = "eu-west-1"\nendpoint = "{self.tables.endpoint}"\n'

    def file_store(self, heading, name):
        return f'[{heading}]\nkind = "sqlite"\npath = "{name}"\n'

    def write_stores(self, first, second, source="", target=""):
        """`source` and `target` are what the queues say beside where they lie; tables are DynamoMQ's unless they say."""
        source, target = (words + ('layout = "dynamomq"\n' if '"dynamodb"' in store and "layout" not in words else "")
                          for store, words in ((first, source), (second, target)))
        self.write("host.toml", '[host]\nname = "e2e"\ndrain_timeout = "10s"\n' + first + second +
                   '[queues.orders]\nvisibility_timeout = "30s"\n' + source + '[queues.orders2]\nstore = "second"\n'
                   'visibility_timeout = "30s"\n' + target)

    def mover(self, *words):
        process = subprocess.Popen([SLUICE, "move", "--from", "orders", "--to", "orders2", "--yes", "--json", *words],
                                   cwd=self.folder, env=self.environment, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def counts(self, queue):
        return json.loads(self.sluice("stats", "--queue", queue, check=True).stdout)

    def run_live(self):
        """Producers, hosts on both sides, a mover that dies again and again; each message is handled once."""
        for queue in ("orders", "orders2"):
            # Slow enough that there is a backlog to carry for as long as the mover lives.
            self.write_job("counts", name=queue, queue=queue, extra="concurrency = 1",
                           options=f'path = "{self.path("worked-" + queue)}"\nsleep = "5ms"')
        sent = []
        enough = threading.Event()

        def produce():
            while not enough.is_set():
                sent.extend(self.send(20))
        producer = threading.Thread(target=produce)
        sent.extend(self.send(1500))
        self.start()
        self.start(report="report2.json")
        producer.start()
        try:
            for _ in range(KILLS):
                worked, carried = len(self.worked()), len(self.lines("worked-orders2"))
                mover = self.mover("--follow")
                until("it carries, and others work", lambda: len(self.worked()) > worked + 60 and
                      len(self.lines("worked-orders2")) > carried or mover.poll() is not None)
                self.assertIsNone(mover.poll(), mover.poll() is not None and mover.communicate())
                mover.send_signal(signal.SIGKILL)
                mover.wait()
        finally:
            enough.set()
            producer.join()
        last = self.mover("--follow", "--until-empty", "--quiet-for", "1s")
        output, errors = last.communicate(timeout=300)
        self.assertEqual(0, last.returncode, output + errors)
        self.assertIn("going on with a move that was broken off", errors)
        self.assertEqual(0, json.loads(output)["refused"])
        until("all are worked off", lambda: len(set(self.worked())) == len(sent), 300)
        self.assertEqual(0, self.counts("orders")["total"])
        until("nothing is left", lambda: self.counts("orders2")["total"] == 0)
        for run in self.runs:
            self.assertEqual(0, run.stop(), run.log())
        self.assertEqual(sorted(sent), sorted(self.worked()), "each once")
        return json.loads(output)

    def worked(self):
        return self.lines("worked-orders") + self.lines("worked-orders2")


class MoveToTable(MoveCase):
    def test_each_message_is_handled_once_while_a_file_becomes_a_table(self):
        self.write_stores(self.file_store("store", "sluice.db"), self.table_store("stores.second"))
        self.sluice("table", "create", "--queue", "orders2", check=True)
        self.run_live()


class MoveToFile(MoveCase):
    def test_each_message_is_handled_once_while_a_table_becomes_a_file(self):
        self.write_stores('[store]\nkind = "dynamodb"\n[dynamodb]\n' + self.place_of_tables(),
                          self.file_store("stores.second", "second.db"))
        self.sluice("table", "create", "--queue", "orders", check=True)
        end = self.run_live()
        self.assertGreater(end["cost"]["requests"], 0)


class MoveToLeased(MoveCase):
    def test_each_message_is_handled_once_while_a_table_becomes_a_leased_one(self):
        self.write_stores('[store]\nkind = "dynamodb"\n[dynamodb]\n' + self.place_of_tables(),
                          self.table_store("stores.second"), target=LEASED)
        for queue in ("orders", "orders2"):
            self.sluice("table", "create", "--queue", queue, check=True)
        self.run_live()


class MoveFromLeased(MoveCase):
    """Hosts own the old queue's shards and work on it all the while."""

    def test_each_message_is_handled_once_while_a_leased_table_becomes_another(self):
        self.write_stores('[store]\nkind = "dynamodb"\n[dynamodb]\n' + self.place_of_tables(),
                          self.table_store("stores.second"), source=LEASED)
        for queue in ("orders", "orders2"):
            self.sluice("table", "create", "--queue", queue, check=True)
        self.run_live()
        self.assertTrue(any("are with a mover" in run.log() for run in self.runs), "the hosts say so")


class MoveLeasedToFile(MoveCase):
    def test_each_message_is_handled_once_while_a_leased_table_becomes_a_file(self):
        self.write_stores('[store]\nkind = "dynamodb"\n[dynamodb]\n' + self.place_of_tables(),
                          self.file_store("stores.second", "second.db"), source=LEASED)
        self.sluice("table", "create", "--queue", "orders", check=True)
        self.run_live()


class MoveOwned(MoveCase):
    def test_hosts_hand_their_shards_over_and_one_that_starts_meanwhile_gets_none_before_the_end(self):
        self.write_stores('[store]\nkind = "dynamodb"\n[dynamodb]\n' + self.place_of_tables(),
                          self.file_store("stores.second", "second.db"), source=LEASED)
        self.sluice("table", "create", "--queue", "orders", check=True)
        self.write_job("counts", name="orders", queue="orders", options=f'path = "{self.path("worked")}"')
        run = self.start().started()
        first = self.send(5)
        until("the hosts work", lambda: sorted(self.lines("worked")) == sorted(first))
        mover = self.mover("--follow")
        until("the host hands over", lambda: "are with a mover" in run.log())
        late = self.start(report="report2.json").started()
        until("the late one knows", lambda: "are with a mover" in late.log())
        sent = self.send(20)
        # What was sent to a shard that is not handed over yet is worked off by its host.
        until("all have gone", lambda: self.counts("orders2")["ready"] + len(self.lines("worked")) == 25)
        mover.send_signal(signal.SIGINT)
        output, errors = mover.communicate(timeout=60)
        self.assertEqual(0, mover.returncode, output + errors)
        self.assertEqual(self.counts("orders2")["ready"], json.loads(output)["moved"])
        self.assertGreater(json.loads(output)["moved"], 0)
        last = self.send(5)
        until("the hosts have their shards again", lambda: set(last) <= set(self.lines("worked")))
        self.assertEqual([], [one for one in self.lines("worked") if one not in first + sent + last])
        for one in (run, late):
            self.assertEqual(0, one.stop(), one.log())


class MoveByCommand(MoveCase):
    needs_tables = False

    def setUp(self):
        super().setUp()
        self.write_stores(self.file_store("store", "sluice.db"), self.file_store("stores.second", "second.db"))

    def move(self, *words):
        return self.sluice("move", "--from", "orders", "--to", "orders2", *words)

    def test_a_look_changes_nothing_and_a_move_everything(self):
        self.send(30)
        looked = self.move("--dry-run", "--json")
        self.assertEqual(30, json.loads(looked.stdout)["matched"], looked.stderr)
        self.assertEqual(30, self.counts("orders")["ready"])
        done = self.move("--yes", "--json")
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(30, json.loads(done.stdout)["moved"])
        self.assertEqual(30, self.counts("orders2")["ready"])
        self.assertEqual(0, self.counts("orders")["total"])
        audit = self.sluice("audit", "--output", "text", check=True).stdout
        self.assertIn("move queue orders to orders2", audit)
        self.assertIn("30 changed", audit)

    def test_it_says_what_is_wrong_and_does_nothing(self):
        self.send(1)
        for words, phrase in ((("--from", "orders", "--to", "orders", "--yes"), "the same queue"),
                              (("--from", "orders", "--to", "orders2"), "no terminal to ask on"),
                              (("--from", "orders", "--to", "orders2", "--dlq", "--no-dlq"), "exclude each other"),
                              (("--from", "orders", "--to", "orders2", "--until-empty"), "--follow"),
                              (("--from", "outbox:shop", "--to", "orders2", "--yes"), "an outbox"),
                              (("--from", "orders", "--to", "orders2", "--rate", "fast"), "number of messages")):
            done = self.sluice("move", *words)
            self.assertEqual(64, done.returncode, done.stdout + done.stderr)
            self.assert_one_line(done.stderr, phrase)
        self.assertEqual(1, self.counts("orders")["ready"])

    def test_ctrl_c_ends_it_between_two_batches_and_it_goes_on(self):
        ids = self.send(200)
        mover = self.mover("--rate", "20/s")
        until("some are moved", lambda: self.counts("orders2")["ready"] > 0)
        mover.send_signal(signal.SIGINT)
        _, errors = mover.communicate(timeout=60)
        self.assertEqual(130, mover.returncode, errors)
        self.assertIn("the same command again goes on", errors)
        here, there = self.counts("orders"), self.counts("orders2")
        self.assertEqual(200, here["ready"] + there["ready"], "nothing is left on the way")
        self.assertEqual(0, here["delayed"] + there["delayed"])
        self.assertEqual(0, self.move("--yes").returncode)
        self.assertEqual(len(ids), self.counts("orders2")["ready"])

    def test_groups_wait_until_nobody_works_on_the_old_queue(self):
        self.write_job("sleeper", options='duration = "1ms"', extra='order = "group"')
        run = self.start().started()
        until("the host tells of itself", lambda: json.loads(self.sluice("jobs", "--json", check=True).stdout))
        self.sluice("send", "--queue", "orders", "--group", "g", "--delay", "1h", "--text", "x", check=True)
        done = self.move("--yes")
        self.assertEqual(1, done.returncode, done.stdout + done.stderr)
        self.assertRegex(done.stderr, r"job orders on host e2e works on queue orders .* pause it and run this again")
        self.assertEqual(1, self.counts("orders")["delayed"])
        self.sluice("pause", "orders", check=True)
        done = self.move("--yes")
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        self.assertEqual(1, self.counts("orders2")["delayed"])
        self.assertEqual(0, run.stop())


if __name__ == "__main__":
    main()
