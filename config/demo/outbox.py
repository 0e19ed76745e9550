#!/usr/bin/env python3
"""The outbox behind `./dev run --outbox`: an application commits orders into a PostgreSQL outbox, two relays publish them
to NATS JetStream, one of them is killed in the middle and started again. At the end every order that was written has been
published, each customer's in the order in which they were committed.
"""

import argparse
import collections
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import outbox_servers
import outbox_stream

STALLED = 60  # seconds
ROWS_A_TRANSACTION = 4


def say(text):
    print(f"\033[1m==>\033[0m {text}" if sys.stderr.isatty() else f"==> {text}", file=sys.stderr, flush=True)


class Writer(threading.Thread):
    """The application: commits orders at an even rate."""

    def __init__(self, postgres, options):
        super().__init__()
        self.session = postgres.writer()
        self.options = options
        self.written = 0
        self.failed = False

    def run(self):
        begun = time.monotonic()
        try:
            while self.written < self.options.rows:
                due = int((time.monotonic() - begun) * self.options.rate) + 1
                while self.written < min(due, self.options.rows):
                    self.commit()
                self.session.stdin.flush()
                time.sleep(0.002)
            self.session.stdin.close()
            self.failed = self.session.wait() != 0
        except OSError:
            self.failed = True

    def commit(self):
        rows = []
        for number in range(self.written + 1, min(self.written + ROWS_A_TRANSACTION, self.options.rows) + 1):
            customer = number * 7919 % self.options.customers
            payload = json.dumps({"order": number, "at": time.time(), "note": "x" * 140})
            rows.append(f"({number}, 'rn::nats:::orders', 'c{customer}', 'OrderPlaced', '{payload}')")
        self.session.stdin.write("INSERT INTO outbox (id, aggregate_type, aggregate_id, event, payload) VALUES "
                                 + ", ".join(rows) + ";\n")
        self.written += len(rows)


class Relays:
    """Hosts that publish the outbox. What `kill` ends is started again after a while, as a container would be."""

    def __init__(self, demonstration):
        self.demonstration = demonstration
        self.processes = [self.start(number) for number in range(2)]

    def start(self, number):
        with open(self.demonstration.path(f"relay-{number}.log"), "a", encoding="utf-8") as log:
            return subprocess.Popen([self.demonstration.options.sluice, "run"], cwd=self.demonstration.folder, stdout=log,
                                    stderr=log, env=dict(os.environ, RELAY=str(number)))

    def kill(self, number):
        self.processes[number].send_signal(signal.SIGKILL)
        self.processes[number].wait()

    def restart(self, number):
        self.processes[number] = self.start(number)

    def stop(self):
        for process in self.processes:
            if process.poll() is None:
                process.terminate()
        return all(process.wait() == 0 for process in self.processes)


class Demonstration:
    def __init__(self, options):
        self.options = options
        self.folder = os.path.abspath(options.folder)
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.path("jobs.d"))

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def write_files(self, postgres, nats):
        with open(self.path("host.toml"), "w", encoding="utf-8") as file:
            file.write(f'[host]\nname = "relay-${{RELAY}}"\nstate_dir = "state-${{RELAY}}"\n'
                       f'plugin_dirs = ["{os.path.abspath(self.options.plugins)}"]\n'
                       f'[outbox.orders]\nkind = "postgres"\nurl = "{postgres.url}"\nproducer = "shop"\nlease = "5s"\n')
        with open(self.path("jobs.d", "relay.toml"), "w", encoding="utf-8") as file:
            file.write('[job]\nsource = "outbox:orders"\nhandler = "nats"\nconcurrency = 64\n'
                       f'[job.options]\nservers = ["nats://127.0.0.1:{nats.port}"]\n')

    def sluice(self, *words):
        done = subprocess.run([self.options.sluice, *words], capture_output=True, text=True, cwd=self.folder,
                              env=dict(os.environ, RELAY="desk"), check=False)
        if done.returncode != 0:
            raise SystemExit(f"outbox: sluice {' '.join(words)} failed: {done.stderr.strip()}")
        return done.stdout

    def run(self):
        say("starting PostgreSQL and a NATS server")
        postgres = outbox_servers.Postgres(self.folder)
        try:
            nats = outbox_servers.Nats(self.folder)
            try:
                return self.relay(postgres, nats)
            finally:
                nats.stop()
        finally:
            postgres.stop()

    def relay(self, postgres, nats):
        options = self.options
        self.write_files(postgres, nats)
        postgres.sql(self.sluice("outbox", "ddl", "orders"))
        stream = outbox_stream.Stream(nats.port, "ORDERS", ["orders.>"])
        relays = Relays(self)
        writer = Writer(postgres, options)
        try:
            say(f"{options.rows} orders of {options.customers} customers at {options.rate} a second; two relays")
            writer.start()
            self.wait_until(lambda: stream.count() >= options.rows // 3, stream)
            say("killing the first relay")
            relays.kill(0)
            self.wait_until(lambda: stream.count() >= options.rows * 2 // 3, stream)
            say("starting it again")
            relays.restart(0)
            self.wait_until(lambda: not writer.is_alive() and stream.count() >= options.rows, stream)
        finally:
            writer.session.stdin.close() if not writer.is_alive() else None
            clean = relays.stop()
        return self.settle(stream, writer, postgres, clean)

    def wait_until(self, done, stream):
        moved, last = time.monotonic(), -1
        while not done():
            count = stream.count()
            if count != last:
                moved, last = time.monotonic(), count
            elif time.monotonic() - moved > STALLED:
                raise SystemExit(f"outbox: nothing has been published for {STALLED} s; see {self.path('relay-1.log')}")
            time.sleep(0.05)

    def settle(self, stream, writer, postgres, clean):
        seen, last, violations, latencies = collections.Counter(), {}, 0, []
        for subject, _, payload, stored_at in stream.read_all():
            order = json.loads(payload)
            number = order["order"]
            seen[number] += 1
            if seen[number] == 1:
                violations += number < last.get(subject, 0)
                last[subject] = number
                latencies.append(stored_at - order["at"])
        latencies.sort()
        pending = int(postgres.sql("SELECT count(*) FROM outbox WHERE sent_at IS NULL"))
        lost = writer.written - len(seen)
        figures = [("written", writer.written), ("published", len(seen)), ("lost", lost), ("not marked as sent", pending),
                   ("order violations", violations), ("duplicates", sum(seen.values()) - len(seen))]
        for name, value in figures:
            print(f"{name:<28}{value:>10}")
        if latencies:
            for name, share in (("p50", 0.50), ("p99", 0.99)):
                milliseconds = latencies[min(len(latencies) - 1, int(len(latencies) * share))] * 1000
                print(f"{'insert to stored, ' + name:<28}{milliseconds:>7.1f} ms")
        if not clean:
            say("a relay did not end cleanly; see its log")
        return 0 if lost == 0 and pending == 0 and violations == 0 and clean and not writer.failed else 1


def main():
    parser = argparse.ArgumentParser(prog="./dev run --outbox", description="The outbox relay's demonstration.")
    parser.add_argument("--rows", type=int, default=20000, help="orders to be written (default 20000)")
    parser.add_argument("--rate", type=int, default=2000, help="of them a second (default 2000)")
    parser.add_argument("--customers", type=int, default=200, help="whose orders keep their order (default 200)")
    parser.add_argument("--folder", default="var/outbox", help=argparse.SUPPRESS)
    parser.add_argument("--sluice", default="build/release/bin/sluice", help=argparse.SUPPRESS)
    parser.add_argument("--plugins", default="build/release/plugins", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.sluice = os.path.abspath(options.sluice)
    for name in ("rows", "rate", "customers"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} takes a number from 1 on")
    sys.exit(Demonstration(options).run())


if __name__ == "__main__":
    main()
