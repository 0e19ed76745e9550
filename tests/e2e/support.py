"""What the end-to-end tests share: the real binary, a folder of its own, a store, and waits that watch for a fact."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

BUILD = os.environ.get("SLUICE_BUILD_DIR", "build/dev")
SOURCE = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
SLUICE = os.path.join(BUILD, "bin", "sluice")
with open(SLUICE, "rb") as binary:
    # A sanitizer keeps the handlers of faults to itself, and needs more memory than a limit grants.
    SANITIZED = re.search(rb"__[at]san_init", binary.read()) is not None
FIXTURE_PLUGINS = os.path.join(BUILD, "tests", "plugins")
MODEL = os.path.join(BUILD, "bin", "dynamodb_model_server")
SHIPPED_PLUGINS = os.path.join(BUILD, "plugins")
EMULATOR = os.environ.get("SLUICE_EMULATOR") or os.path.join(
    SOURCE, "build", "emulator", "node_modules", "@dynoxide", "linux-x64", "dynoxide")
# Sanitized builds are many times slower; every bound below is a bound on a hang, not a measurement.
PATIENCE = float(os.environ.get("SLUICE_TEST_PATIENCE", "60"))
TABLE = "orders"
INDEX = "dynamo-mq-index-queue_type-sent_at"


def until(what, condition, patience=None):
    """Polls until `condition()` is true; fails with `what` when it never becomes so. What asks by a command leaves the machine
    to the hosts two thirds of the time."""
    end = time.monotonic() + (patience or PATIENCE)
    while True:
        asked = time.monotonic()
        value = condition()
        if value:
            return value
        answered = time.monotonic()
        if answered > end:
            raise AssertionError("never happened: " + what)
        time.sleep(min(max(0.02, 2 * (answered - asked)), 0.2))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def http(port, path):
    """Status and text; (0, "") when nobody listens."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


class Emulator:
    """The DynamoDB emulator on a free loopback port, ended by pid."""

    def __init__(self):
        self.port = free_port()
        self.process = subprocess.Popen([EMULATOR, "--host", "127.0.0.1", "--port", str(self.port)],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until("the emulator listens", self.listens)

    def listens(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.port}"

    def call(self, operation, **request):
        """One request by hand; Debian's boto3 is older than some of the parameters. The emulator takes any signature."""
        headers = {"X-Amz-Target": "DynamoDB_20120810." + operation, "Content-Type": "application/x-amz-json-1.0",
                   "Authorization": "AWS4-HMAC-SHA256 Credential=test/20230101/eu-west-1/dynamodb/aws4_request, "
                                    "SignedHeaders=host, Signature=0", "X-Amz-Date": "20230101T000000Z"}
        sent = urllib.request.Request(self.endpoint, data=json.dumps(request).encode(), headers=headers)
        with urllib.request.urlopen(sent, timeout=PATIENCE) as answer:
            return json.loads(answer.read())

    def drop_table(self, table):
        self.call("UpdateTable", TableName=table, DeletionProtectionEnabled=False)
        self.call("DeleteTable", TableName=table)

    def stop(self):
        self.process.kill()
        self.process.wait()


class Model:
    """The model of DynamoDB as a server of its own, which lags where the emulator does not. Ended by pid."""

    def __init__(self, *flags):
        self.process = subprocess.Popen([MODEL, *flags], stdout=subprocess.PIPE, text=True)
        self.endpoint = self.process.stdout.readline().strip()

    def stop(self):
        self.process.kill()
        self.process.communicate()


class Run:
    """A host that runs in the background."""

    def __init__(self, process, log_path, report_path):
        self.process = process
        self.log_path = log_path
        self.report_path = report_path

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def kill(self, number):
        os.kill(self.process.pid, number)

    def wait(self):
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError("the host does not end:\n" + self.log()) from None

    def stop(self, number=signal.SIGTERM):
        self.kill(number)
        return self.wait()

    def report(self):
        with open(self.report_path, encoding="utf-8") as file:
            return json.load(file)

    def started(self):
        until("the host says it runs:\n" + self.log(), lambda: "running" in self.log() or self.process.poll() is not None)
        return self


class Case(unittest.TestCase):
    """A folder with host.toml, jobs.d and plugins; `store` is "sqlite" or "dynamodb"."""

    store = "sqlite"
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="sluice-e2e-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        os.mkdir(self.path("jobs.d"))
        os.mkdir(self.path("plugins"))
        self.runs = []
        self.addCleanup(self.end_runs)
        self.environment = {"PATH": os.environ["PATH"], "HOME": self.folder, "AWS_ACCESS_KEY_ID": "test",
                            "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "eu-west-1", "AWS_EC2_METADATA_DISABLED": "true"}
        for name in ("ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "SLUICE_GUARDS_OFF"):
            if name in os.environ:
                self.environment[name] = os.environ[name]
        self.emulator = None
        if self.store == "dynamodb":
            self.emulator = self.start_tables()
            self.addCleanup(lambda: self.emulator.stop())
        self.write_host()

    def start_tables(self):
        if not os.access(EMULATOR, os.X_OK):
            self.skipTest("SKIPPED: no DynamoDB emulator; ./dev deps installs it")
        return Emulator()

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def write_host(self, extra="", visibility="30s", drain="10s", http_port=None):
        text = f'[host]\nname = "e2e"\ndrain_timeout = "{drain}"\n'
        text += '[log]\nlevel = "debug"\n'
        if http_port:
            text += f'[http]\nlisten = "127.0.0.1:{http_port}"\n'
        if self.store == "sqlite":
            text += '[store]\nkind = "sqlite"\npath = "sluice.db"\n'
        else:
            text += f'[store]\nkind = "dynamodb"\n[dynamodb]\nendpoint = "{self.emulator.endpoint}"\n'
        text += f'[queues.orders]\nvisibility_timeout = "{visibility}"\n'
        if self.store == "dynamodb" and "layout =" not in extra.split("[")[0]:
            text += 'layout = "dynamomq"\n'
        self.write("host.toml", text + extra)
        if self.store == "dynamodb":
            done = self.sluice("table", "create", "--queue", "orders")
            self.assertEqual(0, done.returncode, done.stderr)

    def write_job(self, handler, name="orders", options="", extra="", queue="orders", plugin=None):
        """A job on queue orders; links the plugin it needs into the folder."""
        plugin = plugin or handler
        for place in (FIXTURE_PLUGINS, SHIPPED_PLUGINS):
            file = os.path.join(place, plugin + ".so")
            target = self.path("plugins", plugin + ".so")
            if os.path.exists(file) and not os.path.exists(target):
                shutil.copy(file, target)
        text = f'[job]\nqueue = "{queue}"\nhandler = "{handler}"\n{extra}\n'
        if options:
            text += f"[job.options]\n{options}\n"
        self.write(f"jobs.d/{name}.toml", text)

    def sluice(self, *words, data=None, check=False, environment=None):
        done = subprocess.run([SLUICE, *words], input=data, capture_output=True, text=True, cwd=self.folder,
                              env=environment or self.environment, timeout=PATIENCE)
        if check:
            self.assertEqual(0, done.returncode, f"{words}: {done.stderr}")
        return done

    def send(self, count, queue="orders", body='"x"'):
        """Sends `count` messages of one body; their ids."""
        ids = self.sluice("send", "--queue", queue, "-", data=(body + "\n") * count, check=True).stdout.split()
        self.assertEqual(count, len(set(ids)))
        return ids

    def start(self, *words, report="report.json", environment=None):
        log = self.path(f"host-{len(self.runs)}.log")
        with open(log, "w", encoding="utf-8") as sink:
            process = subprocess.Popen([SLUICE, "run", "--drain-report", self.path(report), *words], cwd=self.folder,
                                       env=environment or self.environment, stdout=sink, stderr=subprocess.STDOUT)
        run = Run(process, log, self.path(report))
        self.runs.append(run)
        return run

    def end_runs(self):
        for run in self.runs:
            if run.process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    run.kill(signal.SIGCONT)
                run.process.kill()
                run.process.wait()

    def stats(self, queue="orders"):
        done = self.sluice("stats", "--queue", queue, check=True)
        return json.loads(done.stdout)

    def at_work(self):
        """How many handlers have begun and not ended; what is claimed may still wait for its worker."""
        return len(json.loads(self.sluice("running", "--output", "json", check=True).stdout))

    def lines(self, name):
        try:
            with open(self.path(name), encoding="utf-8") as file:
                return file.read().split("\n")[:-1]
        except FileNotFoundError:
            return []

    def assert_one_line(self, text, *phrases):
        """A user-facing error: exactly one line that says all of these."""
        self.assertEqual(1, text.strip().count("\n") + 1, text)
        for phrase in phrases:
            self.assertRegex(text, re.compile(phrase, re.I))

    def assert_certificate(self, run, **counts):
        total = run.report()["total"]
        fates = ("done", "retried", "snoozed", "rejected", "discarded", "released", "lost", "stranded")
        self.assertEqual(total["claimed"], sum(total[fate] for fate in fates), total)
        for name, count in counts.items():
            self.assertEqual(count, total[name], f"{name} in {total}\n{run.log()}")
        return total


def main():
    unittest.main()
