"""The real binary on a real PostgreSQL outbox: drained in order, hosts killed in a loop, servers that go away, bad input."""

import collections
import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

import ssh_server
from support import FIXTURE_PLUGINS, PATIENCE, SHIPPED_PLUGINS, SLUICE, SOURCE, free_port, http, until

SERVER = os.path.join(SOURCE, "tests", "support", "postgres_server.sh")


# Behind an [outbox.orders]: Debezium's names.
DEBEZIUM = ('[outbox.orders.columns]\norder_by = "position"\naggregate_type = "aggregatetype"\naggregate_id = "aggregateid"\n'
            'event = "type"\n')


def installed():
    return os.path.isdir("/usr/lib/postgresql") and shutil.which("psql")


class Postgres:
    """A server in a folder of its own, ended by pid."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="sluice-pg-")
        os.chmod(self.folder, 0o755)
        self.port = free_port()
        self.process = None
        self.start()

    def start(self):
        def up():
            if self.process is None or self.process.poll() is not None:
                self.process = subprocess.Popen(["/bin/sh", SERVER, self.folder, str(self.port), "-c", "fsync=off"],
                                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            return subprocess.run(self.psql("SELECT 1"), capture_output=True).returncode == 0

        until("PostgreSQL is up", up)

    def psql(self, sql):
        return ["psql", "-h", self.folder, "-p", str(self.port), "-U", "sluice", "-d", "postgres", "-qAtX", "-v",
                "ON_ERROR_STOP=1", "-c", sql]

    def sql(self, text):
        done = subprocess.run(self.psql(text), capture_output=True, text=True, timeout=PATIENCE)
        if done.returncode != 0:
            raise AssertionError(text + ": " + done.stderr)
        return done.stdout.splitlines()

    @property
    def url(self):
        return f"postgres://sluice:secret@127.0.0.1:{self.port}/postgres"

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class OutboxCase(unittest.TestCase):
    """A folder with a host file for an outbox, whose job writes the id of each row that it is handed to a file."""

    @classmethod
    def setUpClass(cls):
        if not installed():
            raise unittest.SkipTest("PostgreSQL is not installed; run ./dev deps")
        cls.server = Postgres()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="sluice-outbox-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.handled = os.path.join(self.folder, "handled")
        self.hosts = []
        self.addCleanup(self.end_hosts)
        self.configure()
        self.server.sql("DROP TABLE IF EXISTS outbox CASCADE")

    def end_hosts(self):
        for host in self.hosts:
            if host.poll() is None:
                host.kill()
            host.wait()

    def configure(self, outbox="", job="", options="", url=None, name="host.toml"):
        folder = os.path.join(self.folder, "jobs.d")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(f'[host]\nplugin_dirs = ["{FIXTURE_PLUGINS}"]\nstate_dir = "var-{name}"\ndrain_timeout = "10s"\n'
                       f'[store]\npath = "var-{name}/store.db"\n'
                       f'[outbox.orders]\nkind = "postgres"\nurl = "{url or self.server.url}"\nlease = "3s"\n{outbox}\n')
        with open(os.path.join(folder, "relay.toml"), "w", encoding="utf-8") as file:
            file.write(f'[job]\nsource = "outbox:orders"\nhandler = "counts"\nconcurrency = 4\n{job}\n'
                       f'[job.options]\npath = "{self.handled}"\n{options}\n')

    def sluice(self, *words, name="host.toml", expect=0):
        done = subprocess.run([SLUICE, *words, "--config", os.path.join(self.folder, name)], capture_output=True,
                              text=True, timeout=PATIENCE)
        if expect is not None:
            self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done.stdout + (done.stderr if expect != 0 else "")

    def make_table(self, *words):
        ddl = self.sluice("outbox", "ddl", *words)
        subprocess.run(self.server.psql("")[:-2], input=ddl, text=True, check=True, capture_output=True)

    def insert(self, rows, groups):
        self.server.sql("INSERT INTO outbox (aggregate_type, aggregate_id, event, payload) SELECT 'orders', 'g' || "
                        f"(n % {groups}), 'created', json_build_object('n', n) FROM generate_series(1, {rows}) n")

    def launch(self, name="host.toml", *words):
        log = open(os.path.join(self.folder, name + ".log"), "ab")
        with log:
            host = subprocess.Popen([SLUICE, "run", "--config", os.path.join(self.folder, name), *words], stdout=log,
                                    stderr=log)
        self.hosts.append(host)
        return host

    def log(self, name="host.toml"):
        with open(os.path.join(self.folder, name + ".log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def ids(self):
        try:
            with open(self.handled, encoding="utf-8") as file:
                return [int(line) for line in file.read().split()]
        except FileNotFoundError:
            return []

    def sent(self):
        return int(self.server.sql("SELECT count(*) FROM outbox WHERE sent_at IS NOT NULL")[0])

    def violations(self, ids):
        """First deliveries that come after a later row of the same group."""
        group_of = dict(line.split("|") for line in self.server.sql("SELECT id, aggregate_id FROM outbox"))
        highest = collections.defaultdict(int)
        seen = set()
        wrong = []
        for one in ids:
            if one in seen:
                continue
            seen.add(one)
            group = group_of[str(one)]
            if one < highest[group]:
                wrong.append(one)
            highest[group] = max(highest[group], one)
        return wrong


class OutboxPostgres(OutboxCase):
    def test_a_backlog_is_drained_in_order_and_marked(self):
        self.make_table()
        self.insert(2000, 50)
        self.assertEqual(self.launch("host.toml", "--until-empty").wait(PATIENCE), 0, self.log())
        ids = self.ids()
        self.assertEqual(sorted(ids), list(range(1, 2001)))
        self.assertEqual(self.violations(ids), [])
        self.assertEqual(self.sent(), 2000)

    def test_new_rows_reach_a_running_host(self):
        self.make_table()
        self.launch()
        until("it runs", lambda: "running" in self.log())
        self.insert(10, 3)
        until("they are sent", lambda: self.sent() == 10)
        self.assertEqual(self.hosts[0].send_signal(signal.SIGTERM), None)
        self.assertEqual(self.hosts[0].wait(PATIENCE), 0, self.log())

    def test_relays_of_two_machines_name_a_table_alike(self):
        self.make_table()
        for name in ("one", "two"):
            self.insert(1, 1)
            self.configure(name=name + ".toml")
            with open(os.path.join(self.folder, name + ".toml"), "r+", encoding="utf-8") as file:
                text = file.read()
                file.seek(0)
                file.write(text.replace("[host]", f'[host]\nname = "{name}"').replace(FIXTURE_PLUGINS, SHIPPED_PLUGINS))
            with open(os.path.join(self.folder, "jobs.d", "relay.toml"), "w", encoding="utf-8") as file:
                file.write('[job]\nsource = "outbox:orders"\nhandler = "exec"\n[job.options]\ncommand = ["/bin/sh", "-c", '
                           f'"echo $SLUICE_ATTR_PRODUCER >> {self.handled}"]\n')
            self.assertEqual(self.launch(name + ".toml", "--until-empty").wait(PATIENCE), 0, self.log(name + ".toml"))
        with open(self.handled, encoding="utf-8") as file:
            producers = file.read().split()
        self.assertEqual(len(producers), 2, producers)
        self.assertEqual(producers[0], producers[1])
        self.assertRegex(producers[0], r"^postgres-\d+-\d+-\d+$")

    def test_three_hosts_of_which_one_is_killed_again_and_again(self):
        self.make_table()
        names = [f"host-{i}.toml" for i in range(3)]
        for name in names:
            self.configure(options='sleep = "5ms"', name=name)
        running = {name: self.launch(name) for name in names}
        rows, kills = 0, 0
        end = time.monotonic() + 20
        chance = random.Random(7)
        while time.monotonic() < end:
            self.insert(600, 40)
            rows += 600
            victim = chance.choice(names)
            time.sleep(chance.uniform(0.3, 1.2))
            running[victim].kill()
            running[victim].wait()
            kills += 1
            running[victim] = self.launch(victim)
        until("all are sent", lambda: self.sent() == rows, PATIENCE * 2)
        for host in running.values():
            host.send_signal(signal.SIGTERM)
        for host in running.values():
            host.wait(PATIENCE)
        ids = self.ids()
        lost = rows - len(set(ids))
        duplicates = len(ids) - len(set(ids))
        wrong = self.violations(ids)
        print(f"\nrows {rows}, kills {kills}, lost {lost}, order violations {len(wrong)}, duplicates {duplicates}")
        self.assertEqual(lost, 0)
        self.assertEqual(wrong, [])
        # What one host can hold unmarked: 40 groups have one row out each at most.
        self.assertLessEqual(duplicates, 40 * kills)

    def test_a_server_that_goes_away_in_the_middle_is_waited_for(self):
        self.make_table()
        self.insert(3000, 20)
        self.launch()
        until("it is at work", lambda: len(self.ids()) > 100)
        self.server.kill()
        self.server.start()
        until("the rest is sent", lambda: self.sent() == 3000, PATIENCE * 2)
        ids = self.ids()
        self.assertEqual(self.violations(ids), [])
        self.assertEqual(set(ids), set(range(1, 3001)))

    def test_a_server_behind_an_ssh_server_is_reached_where_the_url_says(self):
        if not ssh_server.installed():
            self.skipTest("SKIPPED: OpenSSH's server is not installed; ./dev deps installs it")
        tunnel = ssh_server.SshServer()
        self.addCleanup(tunnel.stop)
        self.make_table()
        self.insert(40, 4)
        self.configure(outbox=tunnel.section("orders"), url=self.server.url.replace("127.0.0.1", "localhost"))
        self.assertEqual(self.launch("host.toml", "--until-empty").wait(PATIENCE), 0, self.log())
        self.assertEqual(self.sent(), 40)

    def test_an_outbox_that_lags_is_not_ready(self):
        port = free_port()
        self.configure(outbox='lag_limit = "1m"\n[outbox.orders.columns]\ncreated_at = "created_at"',
                       job='[job.outbox]\ndeny_types = ["audit"]')
        with open(os.path.join(self.folder, "host.toml"), "a", encoding="utf-8") as file:
            file.write(f'[http]\nlisten = "127.0.0.1:{port}"\n')
        self.make_table()
        self.insert(5, 5)
        # One that waits for its retry, and has for long.
        self.server.sql("UPDATE outbox SET created_at = now() - interval '1 hour', retry_at = now() + interval '1 day', "
                        "retry_count = 1 WHERE id = 1")
        self.launch()

        def probe():
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz?format=json", timeout=PATIENCE) as answer:
                    return answer.status, json.load(answer)
            except urllib.error.HTTPError as error:
                return error.code, json.load(error)
            except OSError:
                return 0, {}

        until("it lags", lambda: "lags" in probe()[1].get("text", ""))
        status, body = probe()
        self.assertEqual(status, 503)
        self.assertRegex(body["text"], "^not ready: outbox:orders lags: the oldest row has waited 36[0-9][0-9] s \\(counted [0-9]+ s ago\\), lag_limit is 60 s$")
        self.assertEqual(body["components"]["lag orders"]["status"], "failing")
        self.server.sql("UPDATE outbox SET retry_at = NULL WHERE id = 1")
        self.server.sql("SELECT pg_notify('sluice_outbox', 'changed:outbox')")
        until("it has caught up", lambda: probe()[0] == 200)

        def scrape():
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE) as answer:
                return answer.read().decode()

        self.server.sql("INSERT INTO outbox (aggregate_type, aggregate_id, event, payload, created_at) "
                        "VALUES ('audit', 'a', 'created', '{}', now() - interval '1 hour')")
        until("a row that nobody takes is counted apart",
              lambda: 'sluice_outbox_excluded{outbox="orders"} 1' in scrape())
        self.assertEqual(probe()[0], 200)
        metrics = scrape()
        self.assertIn('sluice_queue_depth{queue="outbox:orders",state="ready"} 0', metrics)
        self.assertIn('sluice_queue_oldest_seconds{queue="outbox:orders"} 0', metrics)
        self.assertIn('sluice_outbox_published_total{outbox="orders",type="orders"} 5', metrics)
        self.assertIn('sluice_outbox_publish_seconds_count{outbox="orders"} 5', metrics)
        self.assertRegex(metrics, 'sluice_outbox_marked_rows_sum{outbox="orders"} 5')

    def test_an_outbox_whose_database_is_away_is_not_ready(self):
        port = free_port()
        self.configure(outbox='lag_limit = "1h"\n[outbox.orders.columns]\ncreated_at = "created_at"')
        with open(os.path.join(self.folder, "host.toml"), "a", encoding="utf-8") as file:
            file.write(f'[http]\nlisten = "127.0.0.1:{port}"\ndepth_interval = "1s"\n')
        self.make_table()
        self.launch()
        until("it is ready, and has counted", lambda: http(port, "/readyz")[0] == 200 and "lag orders" in http(port, "/readyz")[1])
        self.server.kill()
        status, text = until("it is not ready", lambda: (lambda told: told[0] == 503 and told)(http(port, "/readyz")))
        self.assertRegex(text, "^not ready: (job relay cannot work|outbox:orders: how long .* is not known): ")
        until("the last count does not count", lambda: "lag orders: how long the oldest row has waited is not known"
              in http(port, "/readyz")[1])
        self.assertEqual(http(port, "/healthz")[0], 200, "a restart of the host mends nothing")
        self.server.start()
        self.insert(5, 5)
        until("it is ready again", lambda: http(port, "/readyz")[0] == 200)
        until("its rows are sent", lambda: self.sent() == 5)

    def test_operators_see_and_redrive_dead_letters(self):
        self.configure(outbox='[outbox.orders.columns]\nlast_error = "last_error"')
        self.make_table()
        self.insert(3, 3)
        self.server.sql("UPDATE outbox SET retry_count = 10, last_error = 'no such topic' WHERE id = 2")
        listed = json.loads(self.sluice("ls", "--outbox", "orders", "--dlq", "--json"))
        self.assertIn("no such topic", json.dumps(listed))
        self.assertNotIn('"attempts"', json.dumps(listed), "how often it was tried is not known")
        status = json.loads(self.sluice("outbox", "status", "--json"))
        self.assertEqual((status["pending"], status["dead"], status["by_error"]), (2, 1, {"no such topic": 1}))
        self.server.sql("UPDATE outbox SET last_error = 'request ' || id || ' was refused' WHERE id <> 2")
        status = json.loads(self.sluice("outbox", "status", "--json"))
        self.assertEqual(status["by_error"], {"no such topic": 1, "request # was refused": 2}, "one cause is one line")
        self.server.sql("UPDATE outbox SET last_error = NULL WHERE id <> 2")
        self.sluice("redrive", "2", "--outbox", "orders", "--yes")
        self.assertEqual(self.server.sql("SELECT retry_count IS NULL FROM outbox WHERE id = 2"), ["t"])
        self.server.sql("UPDATE outbox SET sent_at = now() - interval '8 days' WHERE id < 3")
        self.assertEqual(json.loads(self.sluice("outbox", "prune", "--sent-older-than", "7d", "--dry-run", "--json"))
                         ["old_enough"], 2)
        self.sluice("outbox", "prune", "--sent-older-than", "7d", "--yes", "--reason", "a week is enough")
        self.assertEqual(self.server.sql("SELECT id FROM outbox"), ["3"])
        pruned = json.loads(self.sluice("audit", "--outbox", "orders", "--json"))[0]
        self.assertEqual(["outbox prune orders", "--sent-older-than 7d", "a week is enough", "done", 2],
                         [pruned[name] for name in ("what", "filter", "reason", "state", "changed")])


    def test_a_table_as_debezium_has_it_is_drained_in_its_order(self):
        self.configure(outbox=DEBEZIUM)
        self.server.sql("CREATE TABLE outbox (id uuid NOT NULL PRIMARY KEY, aggregatetype varchar(255) NOT NULL, aggregateid "
                        "varchar(255) NOT NULL, type varchar(255) NOT NULL, payload jsonb)")
        self.server.sql("ALTER TABLE outbox ADD COLUMN position bigint GENERATED ALWAYS AS IDENTITY")
        for _ in range(2):
            self.make_table("--in-use")
        self.assertEqual(json.loads(self.sluice("outbox", "status", "--json"))["findings"], [])
        self.server.sql("INSERT INTO outbox (id, aggregatetype, aggregateid, type, payload) SELECT gen_random_uuid(), 'orders', "
                        "'g' || n % 20, 'created', CASE WHEN n % 10 > 0 THEN to_jsonb(n) END FROM generate_series(1, 400) n")
        self.assertEqual(self.launch("host.toml", "--until-empty").wait(PATIENCE), 0, self.log())
        with open(self.handled, encoding="utf-8") as file:
            handled = file.read().split()
        place_of = dict(line.split("|") for line in self.server.sql("SELECT id, position FROM outbox WHERE sent_at IS NOT NULL"))
        self.assertEqual(sorted(handled), sorted(place_of))
        highest = collections.defaultdict(int)
        for place in (int(place_of[one]) for one in handled):
            self.assertLess(highest[place % 20], place, "in the order of its column")
            highest[place % 20] = place
        dead = handled[3]
        self.server.sql(f"UPDATE outbox SET sent_at = NULL WHERE id = '{dead}'")
        self.sluice("invalid", dead, "--outbox", "orders", "--reason", "by hand", "--yes")
        self.assertIn("by hand", self.sluice("get", dead, "--outbox", "orders"))
        self.assertIn(dead, self.sluice("ls", "--outbox", "orders", "--dlq"))
        self.sluice("redrive", dead, "--outbox", "orders", "--yes")
        self.assertEqual(self.launch("host.toml", "--until-empty").wait(PATIENCE), 0, self.log())


class OutboxBadInput(OutboxCase):
    def refused(self, *texts):
        """The host does not start, and says why."""
        host = self.launch()
        self.assertEqual(host.wait(PATIENCE), 78, self.log())
        for text in texts:
            self.assertIn(text, self.log())
        self.assertNotIn("secret", self.log())

    def test_no_table(self):
        self.refused('there is no table "outbox"', "sluice outbox ddl")

    def test_a_column_that_is_missing_or_of_the_wrong_type_is_named(self):
        self.make_table()
        self.server.sql("ALTER TABLE outbox DROP COLUMN retry_at, ALTER COLUMN retry_count TYPE text")
        self.refused('has no column "retry_at"', 'column "retry_count" of table "outbox" is of type text')
        status = self.sluice("outbox", "status", "--json", expect=1)
        self.assertIn('column \\"retry_count\\" of table \\"outbox\\" is of type text', status)

    def test_a_wrong_password(self):
        self.configure(url=self.server.url.replace("secret", "wrong-secret"))
        self.refused("password authentication failed")

    def test_no_such_database(self):
        self.configure(url=self.server.url.replace("/postgres", "/nowhere"))
        self.refused('database "nowhere" does not exist')

    def test_no_rights(self):
        self.make_table()
        self.server.sql("DROP ROLE IF EXISTS reader")
        self.server.sql("CREATE ROLE reader LOGIN PASSWORD 'secret'")
        self.server.sql("GRANT SELECT ON outbox TO reader")
        self.configure(url=self.server.url.replace("sluice:", "reader:"))
        self.refused("may not write", "retry_at", "GRANT UPDATE")

    def test_a_server_that_cannot_be_reached_is_waited_for(self):
        self.configure(url=f"postgres://sluice:secret@127.0.0.1:{free_port()}/postgres")
        self.launch()
        until("it says so", lambda: "Connection refused" in self.log())
        self.assertIsNone(self.hosts[0].poll())

    def test_a_read_only_server_is_named(self):
        self.make_table()
        self.configure(url=self.server.url + "?options=-c%20default_transaction_read_only%3Don")
        self.launch()
        until("it says so", lambda: "read-only" in self.log())

    def test_a_job_whose_outbox_or_feature_is_not_there(self):
        self.configure(job='[job.idempotency]\nkey = "message"')
        self.assertIn("[job.idempotency] cannot stand beside source", self.sluice("check", expect=78))


if __name__ == "__main__":
    unittest.main()
