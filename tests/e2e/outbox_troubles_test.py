"""The real binary and what may go wrong with an outbox while it runs: deadlocks and locks of the application's in PostgreSQL
and MariaDB, a standby that is promoted, rows that nobody could publish beside those of others."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import outbox_kinds_test
import outbox_test
from broker_test import NatsServer
from support import PATIENCE, SHIPPED_PLUGINS, SLUICE, SOURCE, free_port, until

sys.path.insert(0, os.path.join(SOURCE, "config", "demo"))
import outbox_stream

DEADLOCKS = 3


class OutboxDeadlocksPostgres(outbox_test.OutboxCase):
    """A trigger of the table's counts the marks in a row that the application's transactions lock, too: crosswise."""

    ROWS = 400

    def setUp(self):
        super().setUp()
        self.make_table()
        self.server.sql("DROP TABLE IF EXISTS marks; CREATE TABLE marks (id int PRIMARY KEY, n int);"
                        "INSERT INTO marks VALUES (1, 0);"
                        "CREATE OR REPLACE FUNCTION count_marks() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                        "UPDATE marks SET n = n + 1 WHERE id = 1; RETURN NEW; END $$;"
                        "CREATE TRIGGER counts BEFORE UPDATE ON outbox FOR EACH ROW WHEN (NEW.sent_at IS NOT NULL) "
                        "EXECUTE FUNCTION count_marks()")
        self.configure(options='sleep = "5ms"')

    def deadlocks(self):
        return int(self.server.sql("SELECT deadlocks FROM pg_stat_database WHERE datname = 'postgres'")[0])

    def check(self):
        until("every row is marked", lambda: self.sent() == self.ROWS, PATIENCE * 2)
        self.hosts[0].send_signal(signal.SIGTERM)
        self.assertEqual(self.hosts[0].wait(PATIENCE), 0, self.log())
        ids = self.ids()
        self.assertEqual(sorted(ids), list(range(1, self.ROWS + 1)), "each row once")
        self.assertEqual(self.violations(ids), [])
        self.assertEqual(self.server.sql("SELECT n FROM marks"), [str(self.ROWS)], "each row was marked once")

    # First what the marks want second, and once they wait for it what they have had first. Whoever waits for less finds
    # the deadlock, and looks for it once, a second after he began to wait.
    CROSSWISE = ("BEGIN; SET LOCAL deadlock_timeout = '1min'; UPDATE marks SET n = n WHERE id = 1;"
                 "DO $$ BEGIN LOOP EXIT WHEN EXISTS (SELECT FROM pg_locks WHERE NOT granted) OR NOT EXISTS (SELECT FROM outbox "
                 "WHERE sent_at IS NULL); PERFORM pg_sleep(0.01); END LOOP; END $$;"
                 "UPDATE outbox SET event = event WHERE sent_at IS NULL; COMMIT")

    def test_deadlocks_are_named_and_tried_again(self):
        before = self.deadlocks()
        self.insert(self.ROWS, 40)
        first = subprocess.Popen(self.server.psql(self.CROSSWISE), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until("it has what the marks want",
              lambda: self.server.sql("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'"))
        self.launch()
        self.assertEqual(first.wait(PATIENCE), 0)
        until("the marks met with a deadlock", lambda: self.deadlocks() > before)
        self.check()
        self.assertRegex(self.log(), "cannot settle messages, trying again .*deadlock detected .*a deadlock with another "
                         "transaction; it is tried again")

    def test_a_lock_that_is_held_for_too_long_is_named_and_tried_again(self):
        self.insert(self.ROWS, 40)
        holder = subprocess.Popen(self.server.psql("BEGIN; UPDATE marks SET n = n; SELECT pg_sleep(1000)"),
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until("it is held", lambda: self.server.sql("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'"))
        self.launch()
        until("it is named", lambda: "another transaction holds a lock; it is tried again" in self.log())
        self.assertEqual(self.sent(), 0)
        self.server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
        holder.wait(PATIENCE)
        self.check()


class OutboxDeadlocksMariaDb(outbox_kinds_test.OutboxMariaDb):
    """The same there."""

    ROWS = 400

    def setUp(self):
        super().setUp()
        # The server ends the transaction that has written less: that of the marks.
        self.sql("CREATE TABLE marks (id int PRIMARY KEY, n int, by_hand int DEFAULT 0) ENGINE=InnoDB;"
                 "INSERT INTO marks (id, n) SELECT seq, 0 FROM seq_1_to_5000;"
                 "CREATE TRIGGER counts BEFORE UPDATE ON outbox FOR EACH ROW "
                 "UPDATE marks SET n = n + 1 WHERE id = 1 AND NEW.sent_at IS NOT NULL")
        self.configure(options='sleep = "5ms"')

    def value(self, text):
        done = self.run_sql(text)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.split()[-1]

    def deadlocks(self):
        return int(self.value("SHOW GLOBAL STATUS LIKE 'Innodb_deadlocks'"))

    def pending(self):
        return int(self.value("SELECT COUNT(*) FROM outbox WHERE sent_at IS NULL"))

    def check(self):
        until("every row is marked", lambda: self.pending() == 0, PATIENCE * 2)
        self.hosts[0].send_signal(signal.SIGTERM)
        self.assertEqual(self.hosts[0].wait(PATIENCE), 0, self.log())
        self.assertEqual(len(self.ids()), self.ROWS, "each row once")
        self.check_order(self.ROWS)
        self.assertEqual(self.value("SELECT n FROM marks WHERE id = 1"), str(self.ROWS), "each row was marked once")

    def test_deadlocks_are_tried_again(self):
        before = self.deadlocks()
        self.insert(1, self.ROWS)
        self.launch()
        until("it is at work", lambda: self.ids())

        def crosswise():
            self.sql("START TRANSACTION; UPDATE marks SET by_hand = by_hand + 1; SELECT SLEEP(0.3);"
                     "UPDATE outbox SET event = event WHERE sent_at IS NULL; COMMIT")
            time.sleep(0.1)
            return self.deadlocks() - before >= DEADLOCKS or self.pending() == 0

        until("the marks met with deadlocks", crosswise)
        self.assertGreaterEqual(self.deadlocks() - before, 1, "there was no deadlock: the test tests nothing")
        self.check()

    def test_a_lock_that_is_held_for_too_long_is_named_and_tried_again(self):
        self.insert(1, self.ROWS)
        holder = subprocess.Popen(["mariadb", "--no-defaults", f"--socket={self.data}/socket", "-u", "root", "shop", "-e",
                                   "START TRANSACTION; UPDATE marks SET by_hand = 1; SELECT SLEEP(1000)"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        sleeping = "FROM information_schema.PROCESSLIST WHERE STATE = 'User sleep'"
        until("it is held", lambda: self.value(f"SELECT COUNT(*) {sleeping}") == "1")
        self.launch()
        until("it is named", lambda: "somebody else holds a lock on the rows for too long" in self.log())
        self.assertEqual(self.pending(), self.ROWS)
        self.sql("KILL " + self.value(f"SELECT ID {sleeping}"))
        holder.wait(PATIENCE)
        self.check()


# The base's own cases run in their own file.
for name in [name for name in dir(outbox_kinds_test.OutboxMariaDb) if name.startswith("test_")]:
    if name not in OutboxDeadlocksMariaDb.__dict__:
        setattr(OutboxDeadlocksMariaDb, name, None)


class Standby(outbox_test.Postgres):
    """A streaming replica of a server."""

    def __init__(self, primary):
        folder = tempfile.mkdtemp(prefix="sluice-standby-")
        os.chmod(folder, 0o755)
        programs = os.path.dirname(os.path.realpath(shutil.which(
            "pg_basebackup", path=":".join(sorted((os.path.join("/usr/lib/postgresql", version, "bin")
                                                   for version in os.listdir("/usr/lib/postgresql")), reverse=True)))))
        words = [os.path.join(programs, "pg_basebackup"), "-h", primary.folder, "-p", str(primary.port), "-U", "sluice",
                 "-D", os.path.join(folder, "data"), "-R", "-X", "stream", "-c", "fast", "--no-sync"]
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres", "postgres")
            words = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", *words]
        done = subprocess.run(words, capture_output=True, text=True, cwd=folder)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        self.folder = folder
        self.port = free_port()
        self.process = None
        self.start()

    def promote(self):
        self.sql("SELECT pg_promote()")


class OutboxStandby(outbox_test.OutboxCase):
    @classmethod
    def setUpClass(cls):
        if not outbox_test.installed():
            raise unittest.SkipTest("PostgreSQL is not installed; run ./dev deps")

    @classmethod
    def tearDownClass(cls):
        pass

    def setUp(self):
        self.server = outbox_test.Postgres()
        self.addCleanup(self.server.stop)
        self.http = free_port()
        super().setUp()
        self.make_table()
        self.standby = Standby(self.server)
        self.addCleanup(self.standby.stop)

    def configure(self, **words):
        super().configure(**words)
        with open(os.path.join(self.folder, "host.toml"), "a", encoding="utf-8") as file:
            file.write(f'[http]\nlisten = "127.0.0.1:{self.http}"\n')

    def component(self):
        done = subprocess.run(["curl", "-s", f"http://127.0.0.1:{self.http}/readyz?format=json"], capture_output=True, text=True)
        return json.loads(done.stdout)["components"].get("outbox orders", {}) if done.stdout else {}

    def caught_up(self):
        return self.standby.sql("SELECT count(*) FROM outbox") == self.server.sql("SELECT count(*) FROM outbox")

    def test_a_standby_is_named_and_worked_with_once_it_is_promoted(self):
        self.insert(300, 20)
        until("the standby has the rows", self.caught_up)
        self.configure(url=self.standby.url)
        status = self.sluice("outbox", "status", "--json", expect=1)
        self.assertIn("the server is a read-only replica; name the primary in the url", status)
        self.launch()
        until("the log names it", lambda: "read-only replica" in self.log())
        until("the probes name it", lambda: self.component().get("status") == "failing"
              and "read-only replica" in self.component()["text"])
        self.assertEqual(self.ids(), [])
        self.server.kill()
        self.standby.promote()
        self.server, old = self.standby, self.server
        until("all is sent", lambda: self.sent() == 300, PATIENCE * 2)
        until("the probes say so", lambda: self.component().get("status") == "ok")
        ids = self.ids()
        self.assertEqual(sorted(ids), list(range(1, 301)))
        self.assertEqual(self.violations(ids), [])
        self.server = old

    def test_a_fail_over_is_followed_where_the_url_has_both(self):
        self.configure(url=f"postgres://sluice:secret@127.0.0.1:{self.standby.port},127.0.0.1:{self.server.port}/postgres"
                           "?target_session_attrs=read-write", options='sleep = "10ms"')
        self.insert(2000, 20)
        until("the standby has the rows", self.caught_up)
        self.launch()
        until("it is at work", lambda: len(self.ids()) > 200)
        self.server.kill()
        self.standby.promote()
        self.server, old = self.standby, self.server
        until("all is sent", lambda: self.sent() == 2000, PATIENCE * 2)
        ids = self.ids()
        print(f"\nfail-over: lost {2000 - len(set(ids))}, order violations {len(self.violations(ids))}, duplicates "
              f"{len(ids) - len(set(ids))}")
        self.assertEqual(set(ids), set(range(1, 2001)), "none is lost")
        self.assertEqual(self.violations(ids), [])
        self.server = old


@unittest.skipUnless(shutil.which("nats-server"), "nats-server is not installed; run ./dev deps")
class OutboxBadRows(outbox_test.OutboxCase):
    """To a real NATS server: what cannot be published is put aside or tried again by name, and the others pass."""

    BIG = 2 ** 53 + 1

    def setUp(self):
        super().setUp()
        self.nats = NatsServer(os.path.join(self.folder, "stream"))
        self.nats.start()
        self.addCleanup(self.nats.kill)
        until("the NATS server is up", self.open_stream)
        plugins = os.path.join(self.folder, "plugins")
        os.mkdir(plugins)
        shutil.copy(os.path.join(SHIPPED_PLUGINS, "nats.so"), plugins)
        with open(os.path.join(self.folder, "host.toml"), "w", encoding="utf-8") as file:
            file.write(f'[host]\nplugin_dirs = ["{plugins}"]\nstate_dir = "var"\n[outbox.orders]\nkind = "postgres"\n'
                       f'url = "{self.server.url}"\n[outbox.orders.columns]\nlast_error = "last_error"\n')
        with open(os.path.join(self.folder, "jobs.d", "relay.toml"), "w", encoding="utf-8") as file:
            file.write('[job]\nsource = "outbox:orders"\nhandler = "nats"\n[job.options]\nno_stream_wait = "10ms"\n'
                       f'servers = ["nats://127.0.0.1:{self.nats.port}"]\n')

    def open_stream(self):
        try:
            self.stream = outbox_stream.Stream(self.nats.port, "ORDERS", ["orders.>"])
            self.addCleanup(lambda: (self.stream.file.close(), self.stream.socket.close()))
            return True
        except (OSError, SystemExit):
            return False

    def test_rows_that_nobody_can_publish_are_named_and_the_others_pass(self):
        self.make_table()
        self.server.sql("ALTER TABLE outbox ALTER COLUMN payload DROP NOT NULL, ALTER COLUMN event DROP NOT NULL")
        small = "'{}'::json"
        rows = [(1, "rn::nats:::orders", "a", "NULL"), (2, "rn::nats:::orders", "b", small),
                (3, "rn::nats:::orders", "c", "to_json(repeat('x', 10000000))"), (4, "no resource at all", "d", small),
                (5, "rn::nats:::orders", "e f", small), (6, "rn::nats:::orders", "g.*", small),
                (7, "rn::nats:::nowhere", "h", small), (8, "rn::sns:::orders", "i", small),
                (9, "rn::nats:::orders", "j", small), (self.BIG, "rn::nats:::orders", "j", small)]
        self.server.sql("INSERT INTO outbox (id, aggregate_type, aggregate_id, event, payload) VALUES " + ", ".join(
            f"({id}, '{kind}', '{group}', {'NULL' if id == 2 else chr(39) + 'created' + chr(39)}, {payload})"
            for id, kind, group, payload in rows))
        self.launch()
        until("the good ones are sent", lambda: self.sent() == 3)
        listed = lambda: {row["id"]: row for row in json.loads(self.sluice(
            "ls", "--outbox", "orders", "--dlq", "--json"))["statuses"]}
        until("four are dead letters", lambda: len(listed()) == 4)
        # Two without a destination wait for one: no try of theirs is counted.
        until("those two are warned of", lambda: all(text in self.log() for text in ("no resource at all", 'service "sns"')))
        self.assertEqual(self.server.sql("SELECT id FROM outbox WHERE id IN (4, 8) AND retry_count IS NULL AND retry_at IS NULL "
                                         "ORDER BY id"), ["4", "8"])
        self.assertEqual(self.log().count("no resource at all"), 1, self.log())
        errors = dict(line.split("|", 1) for line in self.server.sql("SELECT id, last_error FROM outbox WHERE sent_at IS NULL"))
        for id, said in (("2", "event is NULL"), ("3", "too large"), ("5", "space"), ("6", "wildcard")):
            self.assertIn(said, errors[id], errors)
        until("the one without a stream is tried again", lambda: self.server.sql(
            "SELECT last_error FROM outbox WHERE id = 7 AND retry_at IS NOT NULL AND last_error LIKE '%no stream takes%'"))
        stored = list(self.stream.read_all())
        names = [re.search("Nats-Msg-Id: (.*)\r", headers).group(1) for _, headers, _, _ in stored]
        self.assertEqual(sorted(name.rsplit("/", 1)[1] for name in names), sorted(["1", "9", str(self.BIG)]))
        self.assertEqual([name.rsplit("/", 1)[1] for name, (_, headers, _, _) in zip(names, stored) if "Tombstone: true" in headers],
                         ["1"])
        status = json.loads(self.sluice("outbox", "status", "--json"))
        self.assertEqual((status["pending"], status["dead"]), (3, 4))

    def test_rows_keep_their_tries_while_the_broker_is_away(self):
        with open(os.path.join(self.folder, "jobs.d", "relay.toml"), "r+", encoding="utf-8") as file:
            text = file.read().replace('no_stream_wait = "10ms"', 'no_stream_wait = "10s"')  # its streams come a moment later
            file.seek(0)
            file.write(text + 'timeout = "500ms"\n')
        self.make_table()
        insert = "INSERT INTO outbox (aggregate_type, aggregate_id, event, payload) VALUES ('rn::nats:::orders', 'a', 'e', '{}')"
        self.launch()
        self.server.sql(insert)
        until("a row is sent", lambda: self.sent() == 1)
        self.nats.kill()
        self.server.sql(f"{insert}, ('rn::nats:::orders', 'b', 'e', '{{}}')")
        until("they wait", lambda: "messages wait for it" in self.log())
        self.nats.start()
        # A failure of their own would have them wait for 40 s.
        until("they are sent", lambda: self.sent() == 3, PATIENCE / 2)
        self.assertEqual(self.server.sql("SELECT count(*) FROM outbox WHERE retry_count IS NULL"), ["3"])


if __name__ == "__main__":
    unittest.main()
