"""The real binary on outboxes in MariaDB, also through an SSH server's error, in DynamoDB, and on those that are shared by a
side table, in PostgreSQL also behind a pool of transactions: drained in order, a failure with its retry and dead letter, two
hosts of which one is killed, three of which one is killed again and again."""

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

import outbox_test
import ssh_server
from support import EMULATOR, FIXTURE_PLUGINS, PATIENCE, SHIPPED_PLUGINS, SLUICE, Emulator, free_port, until

MARIADB = "/usr/sbin/mariadbd"
GROUPS = 20
NAMES = ("one", "two", "three")
KILLS = 8


class KindCase(unittest.TestCase):
    """A folder with a host file for an outbox, whose job writes the id of each row that it is handed to a file."""

    __test__ = False

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="sluice-outbox-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.handled = os.path.join(self.folder, "handled")
        # Not the folder of all fixtures: some of them take their time to be refused.
        os.mkdir(os.path.join(self.folder, "plugins"))
        for plugin in ("counts.so", "fails.so"):
            shutil.copy(os.path.join(FIXTURE_PLUGINS, plugin), os.path.join(self.folder, "plugins"))
        self.hosts = []
        self.addCleanup(self.end_hosts)
        self.configure()

    def end_hosts(self):
        for host in self.hosts:
            if host.poll() is None:
                host.kill()
            host.wait()

    def configure(self, handler="counts", job="", retry="", options=""):
        os.makedirs(os.path.join(self.folder, "jobs.d"), exist_ok=True)
        for name in NAMES:
            with open(os.path.join(self.folder, name + ".toml"), "w", encoding="utf-8") as file:
                file.write(f'[host]\nplugin_dirs = ["plugins"]\nstate_dir = "var-{name}"\n'
                           f'[store]\npath = "var-{name}/store.db"\n[outbox.orders]\nlease = "3s"\n'
                           f'poll_interval = "100ms"\n{self.outbox()}')
        with open(os.path.join(self.folder, "jobs.d", "relay.toml"), "w", encoding="utf-8") as file:
            file.write(f'[job]\nsource = "outbox:orders"\nhandler = "{handler}"\nconcurrency = 4\n{job}\n{retry}\n'
                       + (f'[job.options]\npath = "{self.handled}"\n{options}\n' if handler == "counts" else ""))

    def relay_to_queues(self, options='queue = "mail"', host="[queues.mail]\n"):
        """The job's handler is the shipped one for queues; `host` is added to the host file."""
        shutil.copy(os.path.join(SHIPPED_PLUGINS, "queue.so"), os.path.join(self.folder, "plugins"))
        with open(os.path.join(self.folder, "one.toml"), "a", encoding="utf-8") as file:
            file.write(host)
        with open(os.path.join(self.folder, "jobs.d", "relay.toml"), "w", encoding="utf-8") as file:
            file.write('[job]\nsource = "outbox:orders"\nhandler = "queue"\nconcurrency = 8\n'
                       f'[job.options]\n{options}\n')

    def messages(self, queue="mail"):
        return [json.loads(line) for line in self.sluice("export", "--queue", queue).splitlines()]

    def check_messages(self, messages, count):
        """Every row came once, in the order of its group."""
        numbers = [json.loads(message["data"])["n"] if isinstance(message["data"], str) else message["data"]["n"] for message in messages]
        self.assertEqual(sorted(numbers), list(range(1, count + 1)))
        highest = collections.defaultdict(int)
        for one in numbers:
            self.assertLess(highest[one % GROUPS], one)
            highest[one % GROUPS] = one
        for one, message in zip(numbers, messages):
            self.assertEqual(message["group"], f"g{one % GROUPS}")
            self.assertEqual(message["attributes"]["event"], "created")

    def sluice(self, *words, expect=0):
        done = subprocess.run([SLUICE, *words, "--config", os.path.join(self.folder, "one.toml")], capture_output=True,
                              text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done.stdout

    def launch(self, name="one", *words):
        with open(os.path.join(self.folder, name + ".log"), "ab") as log:
            host = subprocess.Popen([SLUICE, "run", "--config", os.path.join(self.folder, name + ".toml"), *words],
                                    stdout=log, stderr=log)
        self.hosts.append(host)
        return host

    def log(self, name="one"):
        with open(os.path.join(self.folder, name + ".log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def ids(self):
        try:
            with open(self.handled, encoding="utf-8") as file:
                return [int(line.split("/")[-1]) for line in file.read().split()]  # in DynamoDB BUCKET/ID
        except FileNotFoundError:
            return []

    def status(self):
        return json.loads(self.sluice("outbox", "status", "--json"))

    def check_order(self, count):
        """Every row came, and first deliveries of a group in its order: row N is of group N modulo GROUPS."""
        first = list(dict.fromkeys(self.ids()))
        self.assertEqual(sorted(first), list(range(1, count + 1)))
        highest = collections.defaultdict(int)
        for one in first:
            self.assertLess(highest[one % GROUPS], one)
            highest[one % GROUPS] = one


class Kinds:
    """What holds for each kind of database."""

    def test_a_backlog_is_drained_in_order_and_marked(self):
        self.insert(1, 400)
        self.assertEqual(self.status()["pending"], 400)
        self.assertEqual(self.launch("one", "--until-empty").wait(PATIENCE), 0, self.log())
        self.check_order(400)
        self.assertEqual(len(self.ids()), 400)
        self.assertEqual(self.status()["pending"], 0)

    def test_rows_become_messages_of_our_own_queues_once_each_through_kills(self):
        self.relay_to_queues()
        self.sluice("check")
        self.insert(1, 400)
        host = self.launch()
        until("some are sent", lambda: len(self.messages()) > 50)
        host.kill()
        host.wait()
        self.assertEqual(self.launch("one", "--until-empty").wait(PATIENCE), 0, self.log())
        self.check_messages(self.messages(), 400)
        self.publish_again(7)
        self.assertEqual(self.launch("one", "--until-empty").wait(PATIENCE), 0, self.log())
        self.assertEqual(self.status()["pending"], 0)
        self.check_messages(self.messages(), 400)

    def test_rows_that_no_list_takes_are_apart(self):
        self.configure(job='[job.outbox]\ndeny_types = ["audit"]')
        self.insert(1, 40)
        self.insert(41, 45, "audit")
        self.assertEqual([self.status()[name] for name in ("pending", "excluded")], [40, 5])
        self.assertEqual(self.launch("one", "--until-empty").wait(PATIENCE), 0, self.log())
        self.check_order(40)
        self.assertEqual([self.status()[name] for name in ("pending", "excluded")], [0, 5])
        self.assertEqual(json.loads(self.sluice("stats", "--outbox", "orders", "--json"))["total"], 0)
        # As the page says.
        self.sluice("delete", "--outbox", "orders", "--where", 'attributes.aggregate_type = "audit"', "--yes")
        self.assertEqual(self.status()["excluded"], 0)

    def test_rows_that_fail_become_dead_letters_and_come_back(self):
        self.configure(handler="fails", retry='[job.retry]\nmax_attempts = 2\nbase = "10ms"')
        self.insert(1, 3)
        host = self.launch()
        until("they are dead letters", lambda: self.status()["dead"] == 3)
        host.send_signal(signal.SIGTERM)
        self.assertEqual(host.wait(PATIENCE), 0, self.log())
        listed = json.loads(self.sluice("ls", "--outbox", "orders", "--dlq", "--json"))
        self.assertEqual(sorted(row["id"].split("/")[-1] for row in listed["statuses"]), ["1", "2", "3"])
        self.sluice("redrive", "--outbox", "orders", "--all", "--yes")
        self.configure()
        self.assertEqual(self.launch("one", "--until-empty").wait(PATIENCE), 0, self.log())
        self.check_order(3)

    def test_a_row_that_cannot_be_handed_out_holds_its_group_where_dead_letters_do(self):
        self.configure(job='on_dead_letter = "hold"')
        self.insert(1, 60)
        self.set_event(5, None)
        host = self.launch()
        others = [one for one in range(1, 61) if one % GROUPS != 5]
        until("it is a dead letter, and the others are done",
              lambda: self.status()["dead"] == 1 and set(self.ids()) >= set(others))
        host.send_signal(signal.SIGTERM)
        self.assertEqual(host.wait(PATIENCE), 0, self.log())
        self.assertEqual(sorted(self.ids()), others, "nothing went behind it")
        self.sluice("redrive", "--outbox", "orders", "--all", "--yes")
        self.set_event(5, "created")
        self.assertEqual(self.launch("one", "--until-empty").wait(PATIENCE), 0, self.log())
        self.assertEqual(self.ids()[len(others):], [5, 25, 45])

    def test_the_groups_of_a_host_that_is_killed_go_to_the_other(self):
        self.insert(1, 300)
        self.launch("one")
        self.launch("two")
        until("something is handled", lambda: len(self.ids()) > 20)
        self.hosts[0].kill()
        self.insert(301, 600)
        until("all is published", lambda: self.status()["pending"] == 0)
        self.hosts[1].send_signal(signal.SIGTERM)
        self.assertEqual(self.hosts[1].wait(PATIENCE), 0, self.log("two"))
        self.check_order(600)


    def test_three_hosts_of_which_one_is_killed_again_and_again(self):
        self.configure(options='sleep = "5ms"')
        running = {name: self.launch(name) for name in NAMES}
        before = dict.fromkeys(NAMES, 0)  # what the log of each had before it was launched last
        chance = random.Random(7)
        rows = 0
        for _ in range(KILLS):
            self.insert(rows + 1, rows + 300)
            rows += 300
            victim = chance.choice(NAMES)
            time.sleep(chance.uniform(0.3, 1.2))
            running[victim].kill()
            running[victim].wait()
            before[victim] = len(self.log(victim))
            running[victim] = self.launch(victim)
        until("all is published", lambda: self.status()["pending"] == 0, PATIENCE * 2)
        # Before that a signal ends one as it ends any program.
        until("all hosts run", lambda: all("running  host=" in self.log(name)[before[name]:] for name in NAMES), PATIENCE)
        for host in running.values():
            host.send_signal(signal.SIGTERM)
        for host in running.values():
            self.assertEqual(host.wait(PATIENCE), 0)
        duplicates = len(self.ids()) - rows
        print(f"\n{type(self).__name__}: rows {rows}, kills {KILLS}, lost {rows - len(set(self.ids()))}, "
              f"duplicates {duplicates}")
        self.check_order(rows)
        # What one host may hold unmarked: of each group a few rows that its handler was quicker with than the marks.
        self.assertLessEqual(duplicates, 4 * GROUPS * KILLS)


class Schemas:
    """What holds where a table can be named with its schema and without."""

    SCHEMA = "public"

    def test_a_host_that_names_the_schema_shares_with_one_that_does_not(self):
        self.configure(options='sleep = "5ms"')
        with open(os.path.join(self.folder, "two.toml"), "a", encoding="utf-8") as file:
            file.write(f'schema = "{self.SCHEMA}"\n')
        self.launch("one")
        self.launch("two")
        self.insert(1, 600)
        until("all is published", lambda: self.status()["pending"] == 0)
        for host in self.hosts:
            host.send_signal(signal.SIGTERM)
            self.assertEqual(host.wait(PATIENCE), 0, self.log() + self.log("two"))
        self.check_order(600)
        self.assertEqual(len(self.ids()), 600, "each row once")


class OutboxDynamo(Kinds, KindCase):
    __test__ = True

    @classmethod
    def setUpClass(cls):
        if not os.access(EMULATOR, os.X_OK):
            raise unittest.SkipTest("SKIPPED: no DynamoDB emulator; ./dev deps installs it")
        os.environ.update(AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test")

    def setUp(self):
        self.emulator = Emulator()
        self.addCleanup(self.emulator.stop)
        super().setUp()
        self.emulator.call("CreateTable", TableName="shop-outbox", BillingMode="PAY_PER_REQUEST",
                           AttributeDefinitions=[{"AttributeName": "bucket", "AttributeType": "S"},
                                                 {"AttributeName": "id", "AttributeType": "N"}],
                           KeySchema=[{"AttributeName": "bucket", "KeyType": "HASH"},
                                      {"AttributeName": "id", "KeyType": "RANGE"}])

    def outbox(self):
        return (f'kind = "dynamodb"\nregion = "eu-west-1"\nendpoint = "{self.emulator.endpoint}"\n'
                'table = "shop-outbox"\nbuckets = 8\n')

    def publish_again(self, row):
        """As if its mark had been lost."""
        self.insert(row, row)

    def insert(self, first, last, of="orders"):
        rows = [{"bucket": {"S": str(one % GROUPS % 8)}, "id": {"N": str(one)}, "event": {"S": "created"},
                 "aggregate_type": {"S": of}, "aggregate_id": {"S": f"g{one % GROUPS}"},
                 "payload": {"S": json.dumps({"n": one})}} for one in range(first, last + 1)]
        for begin in range(0, len(rows), 25):
            self.emulator.call("BatchWriteItem", RequestItems={
                "shop-outbox": [{"PutRequest": {"Item": row}} for row in rows[begin:begin + 25]]})

    def set_event(self, row, event):
        values = {":e": {"S": event}} if event else {}
        self.emulator.call("UpdateItem", TableName="shop-outbox",
                           Key={"bucket": {"S": str(row % GROUPS % 8)}, "id": {"N": str(row)}},
                           UpdateExpression="SET #e = :e" if event else "REMOVE #e",
                           ExpressionAttributeNames={"#e": "event"},
                           **({"ExpressionAttributeValues": values} if event else {}))

    def test_a_table_that_is_not_there_is_named(self):
        self.emulator.call("DeleteTable", TableName="shop-outbox")
        self.assertEqual(self.launch().wait(PATIENCE), 78, self.log())
        self.assertIn("table 'shop-outbox' does not exist", self.log())


class OutboxMariaDb(Kinds, Schemas, KindCase):
    __test__ = True
    SCHEMA = "shop"

    @classmethod
    def setUpClass(cls):
        if not os.access(MARIADB, os.X_OK) or not shutil.which("mariadb-install-db"):
            raise unittest.SkipTest("SKIPPED: MariaDB's server is not installed; ./dev deps installs it")
        if not shutil.which("mariadb"):
            raise unittest.SkipTest("SKIPPED: MariaDB's client is not installed; ./dev deps installs it")
        cls.data = tempfile.mkdtemp(prefix="sluice-mariadb-")
        os.mkdir(os.path.join(cls.data, "tmp"))
        user = ["--user=root"] if os.geteuid() == 0 else []
        subprocess.run(["mariadb-install-db", "--no-defaults", *user, f"--datadir={cls.data}/data", f"--tmpdir={cls.data}/tmp",
                        "--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"],
                       check=True, capture_output=True)
        cls.port = free_port()
        cls.server = subprocess.Popen([MARIADB, "--no-defaults", *user, "--bind-address=127.0.0.1", "--skip-name-resolve",
                                       f"--datadir={cls.data}/data", f"--socket={cls.data}/socket", f"--port={cls.port}",
                                       f"--tmpdir={cls.data}/tmp", f"--pid-file={cls.data}/pid",
                                       f"--log-error={cls.data}/error.log"])
        until("MariaDB is up", lambda: cls.run_sql("SELECT 1", "").returncode == 0)

    @classmethod
    def tearDownClass(cls):
        cls.server.kill()
        cls.server.wait()
        shutil.rmtree(cls.data, ignore_errors=True)

    @classmethod
    def run_sql(cls, text, database="shop"):
        return subprocess.run(["mariadb", "--no-defaults", f"--socket={cls.data}/socket", "-u", "root", "-N", *([database] if database else [])],
                              input=text, text=True, capture_output=True)

    def sql(self, text, database="shop"):
        done = self.run_sql(text, database)
        self.assertEqual(done.returncode, 0, done.stderr)

    def setUp(self):
        self.sql("DROP DATABASE IF EXISTS shop; CREATE DATABASE shop CHARACTER SET utf8mb4", "")
        super().setUp()
        self.sql(self.sluice("outbox", "ddl", "orders"))

    def outbox(self):
        return f'kind = "mysql"\nurl = "mysql://root@127.0.0.1:{self.port}/shop"\n'

    def publish_again(self, row):
        self.sql(f"UPDATE outbox SET sent_at = NULL WHERE id = {row}")

    def insert(self, first, last, of="orders"):
        self.sql("INSERT INTO outbox (id, aggregate_type, aggregate_id, event, payload) VALUES "
                 + ", ".join(f"({one}, '{of}', 'g{one % GROUPS}', 'created', '{{\"n\": {one}}}')"
                             for one in range(first, last + 1)))

    def set_event(self, row, event):
        self.sql(f"ALTER TABLE outbox MODIFY event VARCHAR(255) NULL; "
                 f"UPDATE outbox SET event = {repr(event) if event else 'NULL'} WHERE id = {row}")

    def test_a_table_as_debezium_has_it_is_drained_in_its_order(self):
        self.sql("DROP TABLE outbox; CREATE TABLE outbox (id CHAR(36) PRIMARY KEY, aggregatetype VARCHAR(255) NOT NULL, "
                 "aggregateid VARCHAR(255) NOT NULL, type VARCHAR(255) NOT NULL, payload JSON, "
                 "position BIGINT NOT NULL AUTO_INCREMENT UNIQUE)")
        with open(os.path.join(self.folder, "one.toml"), "a", encoding="utf-8") as file:
            file.write(outbox_test.DEBEZIUM)
        for _ in range(2):
            self.sql(self.sluice("outbox", "ddl", "orders", "--in-use"))
        self.sql("INSERT INTO outbox (id, aggregatetype, aggregateid, type, payload) SELECT UUID(), 'orders', "
                 f"CONCAT('g', seq % {GROUPS}), 'created', IF(seq % 10 = 0, NULL, '1') FROM seq_1_to_200")
        self.assertEqual(self.launch("one", "--until-empty").wait(PATIENCE), 0, self.log())
        with open(self.handled, encoding="utf-8") as file:
            handled = file.read().split()
        rows = dict(line.split("\t") for line in self.run_sql("SELECT id, position FROM outbox WHERE sent_at IS NOT NULL")
                    .stdout.splitlines())
        self.assertEqual(sorted(handled), sorted(rows))
        highest = collections.defaultdict(int)
        for place in (int(rows[one]) for one in handled):
            self.assertLess(highest[place % GROUPS], place)
            highest[place % GROUPS] = place

    def test_a_server_behind_an_ssh_server_is_reached_where_the_url_says(self):
        if not ssh_server.installed():
            self.skipTest("SKIPPED: OpenSSH's server is not installed; ./dev deps installs it")
        tunnel = ssh_server.SshServer()
        self.addCleanup(tunnel.stop)
        with open(os.path.join(self.folder, "one.toml"), "a", encoding="utf-8") as file:
            file.write(tunnel.section("orders"))
        self.insert(1, 40)
        self.assertEqual(self.launch("one", "--until-empty").wait(PATIENCE), 0, self.log())
        self.check_order(40)

    def test_an_ssh_server_that_does_not_answer_is_named(self):
        key = os.path.join(self.folder, "key")
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        with open(os.path.join(self.folder, "one.toml"), "a", encoding="utf-8") as file:
            file.write(f'[outbox.orders.ssh]\nhost = "127.0.0.1"\nport = {free_port()}\nuser = "relay"\n'
                       f'private_key = "{key}"\nknown_hosts = "{key}.pub"\n')
        done = subprocess.run([SLUICE, "outbox", "status", "--config", os.path.join(self.folder, "one.toml")],
                              capture_output=True, text=True, timeout=PATIENCE)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("ssh://relay@127.0.0.1", done.stderr)


class OutboxMariaDbTable(OutboxMariaDb):
    """The same, with its hosts in a side table."""

    def outbox(self):
        return super().outbox() + 'coordination = "table"\n'

    def test_a_side_table_that_is_not_there_is_named(self):
        self.sql("DROP TABLE outbox_sluice")
        self.assertEqual(self.launch().wait(PATIENCE), 78, self.log())
        self.assertIn("there is no such table", self.log())
        self.assertIn('coordination = "table" needs `outbox_sluice`', self.log())


class OutboxPostgresTable(Kinds, Schemas, KindCase):
    __test__ = True

    @classmethod
    def setUpClass(cls):
        if not outbox_test.installed():
            raise unittest.SkipTest("SKIPPED: PostgreSQL is not installed; ./dev deps installs it")
        cls.server = outbox_test.Postgres()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def setUp(self):
        self.server.sql("DROP TABLE IF EXISTS outbox CASCADE")
        self.server.sql("DROP TABLE IF EXISTS outbox_sluice")
        super().setUp()
        ddl = self.sluice("outbox", "ddl", "orders")
        subprocess.run(self.server.psql("")[:-2], input=ddl, text=True, check=True, capture_output=True)

    def url(self):
        return self.server.url

    def outbox(self):
        return f'kind = "postgres"\nurl = "{self.url()}"\ncoordination = "table"\n'

    def publish_again(self, row):
        self.server.sql(f"UPDATE outbox SET sent_at = NULL WHERE id = {row}")

    def insert(self, first, last, of="orders"):
        self.server.sql(f"INSERT INTO outbox (id, aggregate_type, aggregate_id, event, payload) SELECT n, '{of}', 'g' || "
                        f"(n % {GROUPS}), 'created', json_build_object('n', n) FROM generate_series({first}, {last}) n")

    def set_event(self, row, event):
        self.server.sql("ALTER TABLE outbox ALTER event DROP NOT NULL; "
                        f"UPDATE outbox SET event = {repr(event) if event else 'NULL'} WHERE id = {row}")

    def test_a_side_table_that_is_not_there_is_named(self):
        self.server.sql("DROP TABLE outbox_sluice")
        self.assertEqual(self.launch().wait(PATIENCE), 78, self.log())
        self.assertIn('there is no table "outbox_sluice"', self.log())

    def test_rows_go_to_tables_of_both_layouts(self):
        if not os.access(EMULATOR, os.X_OK):
            self.skipTest("SKIPPED: no DynamoDB emulator; ./dev deps installs it")
        emulator = Emulator()
        self.addCleanup(emulator.stop)
        os.environ.update(AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test")
        self.relay_to_queues('[job.options.routes]\norders = "mail"\nbills = "bills"\n',
                             f'[stores.cloud]\nkind = "dynamodb"\nregion = "eu-west-1"\nendpoint = "{emulator.endpoint}"\n'
                             '[queues.mail]\nstore = "cloud"\nlayout = "dynamomq"\n[queues.bills]\nstore = "cloud"\nlayout = "leased"\n')
        self.sluice("table", "create", "--queue", "mail")
        self.sluice("table", "create", "--queue", "bills")
        self.insert(1, 60)
        self.insert(61, 80, "bills")
        self.assertEqual(self.launch("one", "--until-empty").wait(PATIENCE), 0, self.log())
        self.publish_again(7)
        self.publish_again(67)
        self.assertEqual(self.launch("one", "--until-empty").wait(PATIENCE), 0, self.log())
        self.assertEqual(sorted(message["data"]["n"] for message in self.messages("mail")), list(range(1, 61)))
        self.assertEqual(sorted(message["data"]["n"] for message in self.messages("bills")), list(range(61, 81)))


class OutboxPostgresPooled(OutboxPostgresTable):
    """The same, behind a PgBouncer that gives each transaction another of three connections."""

    @classmethod
    def setUpClass(cls):
        cls.pooler = shutil.which("pgbouncer", path=os.environ["PATH"] + ":/usr/sbin")
        if not cls.pooler:
            raise unittest.SkipTest("SKIPPED: PgBouncer is not installed; ./dev deps installs it")
        super().setUpClass()
        cls.pool_folder = tempfile.mkdtemp(prefix="sluice-pgbouncer-")
        os.chmod(cls.pool_folder, 0o755)
        cls.pool_port = free_port()
        config = os.path.join(cls.pool_folder, "pgbouncer.ini")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f"[databases]\npostgres = host=127.0.0.1 port={cls.server.port} user=sluice password=secret\n"
                       f"sessions = host=127.0.0.1 port={cls.server.port} user=sluice password=secret dbname=postgres "
                       "pool_mode=session pool_size=9\n"
                       f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {cls.pool_port}\nunix_socket_dir =\n"
                       "auth_type = any\npool_mode = transaction\ndefault_pool_size = 3\n")
        user = {"user": "postgres"} if os.geteuid() == 0 else {}
        cls.pool = subprocess.Popen([cls.pooler, "-q", config], cwd=cls.pool_folder, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL, **user)
        until("PgBouncer is up", lambda: cls.pooled("SELECT 1").returncode == 0)

    @classmethod
    def tearDownClass(cls):
        cls.pool.kill()
        cls.pool.wait()
        shutil.rmtree(cls.pool_folder, ignore_errors=True)
        super().tearDownClass()

    @classmethod
    def pooled(cls, sql):
        return subprocess.run(["psql", "-h", "127.0.0.1", "-p", str(cls.pool_port), "-U", "sluice", "-d", "postgres", "-qAtX",
                               "-c", sql], capture_output=True, text=True)

    def url(self):
        return f"postgres://sluice:secret@127.0.0.1:{self.pool_port}/postgres"

    def configure_locks(self, database):
        """As it is where nobody has thought of the pool."""
        for name in NAMES:
            file = os.path.join(self.folder, name + ".toml")
            with open(file, encoding="utf-8") as read:
                text = read.read().replace('coordination = "table"\n', "").replace("/postgres\"", f"/{database}\"")
            with open(file, "w", encoding="utf-8") as write:
                write.write(text)

    def test_locks_of_sessions_that_are_dealt_out_are_refused(self):
        self.configure_locks("postgres")
        self.insert(1, 10)
        mend = 'set coordination = "table" in [outbox.NAME]'
        for _ in range(3):
            self.assertEqual(self.launch().wait(PATIENCE), 78, self.log())
        self.assertIn(mend, self.log().replace("\\", ""))
        findings = json.loads(self.sluice("outbox", "status", "--json", expect=1))["findings"]
        self.assertIn(mend, findings[0]["text"])
        self.assertEqual(self.ids(), [])

    def test_locks_of_a_pool_that_deals_out_whole_sessions_hold(self):
        self.configure_locks("sessions")
        self.insert(1, 300)
        self.launch("one")
        self.launch("two")
        until("all is published", lambda: self.server.sql("SELECT count(*) FROM outbox WHERE sent_at IS NULL") == ["0"])
        for host in self.hosts:
            host.send_signal(signal.SIGTERM)
            self.assertEqual(host.wait(PATIENCE), 0, self.log() + self.log("two"))
        self.check_order(300)
        self.assertEqual(len(self.ids()), 300)

    # Named so that it runs before those whose relays are refused: what such a one has set stays on the pool's sessions.
    def test_and_what_other_clients_of_the_pool_are_given_is_as_it_was(self):
        self.insert(1, 100)
        self.assertEqual(self.launch("one", "--until-empty").wait(PATIENCE), 0, self.log())
        for setting, value in (("lock_timeout", "0"), ("statement_timeout", "0"), ("enable_seqscan", "on"),
                               ("idle_session_timeout", "0")):
            for _ in range(9):
                self.assertEqual(self.pooled(f"SHOW {setting}").stdout.strip(), value)


if __name__ == "__main__":
    unittest.main()
