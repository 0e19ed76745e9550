#!/usr/bin/env python3
"""The bank behind `./dev run --bank`: transfers between accounts by messages, while hosts are killed and answers are lost.

Each transfer debits one account, credits another and sends a receipt (plugins/transfer). Some are sent twice. At the end no
money has come or gone, each transfer was applied once, and each has its receipt once.
"""

import argparse
import collections
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bank_books
import bank_stores

BATCH = 1000
STALLED = 120  # seconds
REJECTED = "debit"  # the label of the write that is refused when an account is short


def say(text):
    print(f"\033[1m==>\033[0m {text}" if sys.stderr.isatty() else f"==> {text}", file=sys.stderr, flush=True)


class Hosts:
    """Hosts that are started again whenever they end, and killed at random."""

    def __init__(self, bank, count, pause):
        self.bank, self.pause, self.events = bank, pause, []
        self.kills = collections.Counter()
        self.ending = threading.Event()
        self.lock = threading.Lock()
        self.processes = [None] * count
        self.threads = [threading.Thread(target=self.keep, args=(n,)) for n in range(count)]
        self.killer = threading.Thread(target=self.kill)

    def start(self):
        for thread in self.threads + [self.killer]:
            thread.start()

    def keep(self, number):
        while not self.ending.is_set():
            with self.lock:
                if self.ending.is_set():
                    return
                self.processes[number] = self.bank.start_host(number)
            self.processes[number].wait()

    def kill(self):
        dice = random.Random(self.bank.options.seed)
        while not self.ending.wait(dice.uniform(0.2, 1.8) * self.pause):
            number = dice.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM))
            with self.lock:
                process = dice.choice(self.processes)
                if process is not None and process.poll() is None:
                    process.send_signal(number)
                    self.kills[number.name] += 1
                    self.events.append((time.monotonic(), number.name))

    def stop(self):
        """Ends them all as an operator does; True when each has ended cleanly."""
        self.ending.set()
        self.killer.join()
        with self.lock:
            for process in self.processes:
                if process is not None and process.poll() is None:
                    process.terminate()
        for thread in self.threads:
            thread.join()


class Bank:
    def __init__(self, options):
        self.options = options
        self.folder = os.path.abspath(options.folder)
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(os.path.join(self.folder, "jobs.d"))
        self.store = (bank_stores.DynamoDb if options.dynamodb else bank_stores.Sqlite)(self.folder, options)
        self.environment = dict(os.environ, AWS_ACCESS_KEY_ID="bank", AWS_SECRET_ACCESS_KEY="bank")
        self.dice = random.Random(options.seed)
        self.sent = []      # every transfer, once
        self.messages = 0   # duplicates too
        self.begun = self.moved = time.monotonic()
        self.progress = []  # (seconds, messages that have ended)
        self.write_files()

    def write_files(self):
        with open(self.path("host.toml"), "w", encoding="utf-8") as file:
            file.write(f'[host]\nname = "bank-${{BANK_HOST}}"\nplugin_dirs = ["{os.path.abspath(self.options.plugins)}"]\n'
                       'drain_timeout = "5s"\n[queues.transfers]\nvisibility_timeout = "5s"\n[queues.receipts]\n'
                       + self.store.host_file())
        # Who was killed over a message is not that message's fault, however often that comes.
        with open(self.path("jobs.d", "transfers.toml"), "w", encoding="utf-8") as file:
            file.write('[job]\nqueue = "transfers"\nhandler = "transfer"\nconcurrency = 8\n'
                       f'rate_limit = "{self.options.rate}/s per host"\n'
                       + ('[job.idempotency]\nkey = "body:/transfer"\n' if self.options.twice > 0 else "") +
                       '[job.retry]\nmax_attempts = 1000\nbase = "100ms"\nmax = "2s"\n')

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def sluice(self, *words, data=None):
        done = subprocess.run([self.options.sluice, *words], input=data, capture_output=True, text=True, cwd=self.folder,
                              env=dict(self.environment, BANK_HOST="desk", **self.store.around_the_gate()), check=False)
        if done.returncode != 0:
            raise SystemExit(f"bank: sluice {' '.join(words)} failed: {done.stderr.strip()}")
        return done.stdout

    def start_host(self, number):
        with open(self.path(f"host-{number}.log"), "a", encoding="utf-8") as log:
            return subprocess.Popen([self.options.sluice, "run"], cwd=self.folder, stdout=log, stderr=log,
                                    env=dict(self.environment, BANK_HOST=str(number)))

    def send(self, count):
        """Sends so many more transfers, some of them twice: another message with the same key."""
        lines = []
        for _ in range(count):
            pair = self.dice.sample(range(self.options.accounts), 2)
            transfer = {"transfer": f"t-{len(self.sent):06}", "from": bank_books.account(pair[0]),
                        "to": bank_books.account(pair[1]), "amount": self.dice.randint(1, bank_books.OPENING // 5)}
            self.sent.append(transfer)
            lines += [json.dumps(transfer)] * (2 if self.dice.random() < self.options.twice else 1)
        self.dice.shuffle(lines)
        self.messages += len(lines)
        self.sluice("send", "--queue", "transfers", "-", data="\n".join(lines) + "\n")

    def waiting(self):
        """How many messages have not ended. Hosts tell that of a leased queue, and one that has just begun does not know all of
        it: there is none where a count says so."""
        for exact in ([], ["--exact"]):
            total = json.loads(self.sluice("stats", "--queue", "transfers", "--json", *exact))["total"]
            if total > 0:
                break
        return total

    def run(self):
        options = self.options
        self.store.open(self)
        say(f"{options.transfers:,} transfers between {options.accounts} accounts on {self.store.name}, {options.hosts} hosts; "
            f"one is killed every {options.pause:g} s")
        hosts = Hosts(self, options.hosts, options.pause)
        end = self.begun + options.minutes * 60
        try:
            hosts.start()
            shown = time.monotonic()
            while True:
                waiting = self.waiting()
                self.note(self.messages - waiting)
                more = (len(self.sent) < options.transfers or time.monotonic() < end
                        or sum(hosts.kills.values()) < options.kills)
                if more and waiting < 2 * BATCH:
                    self.send(min(BATCH, options.transfers - len(self.sent)) if len(self.sent) < options.transfers else 100)
                elif not more and waiting == 0:
                    break
                if time.monotonic() - shown > 5:
                    shown = time.monotonic()
                    say(f"{len(self.sent):,} sent, {waiting:,} messages wait, "
                        f"{sum(hosts.kills.values())} kills{self.store.losses()}")
                threading.Event().wait(0.2)
        finally:
            hosts.stop()
        return self.settle(hosts)

    def note(self, ended):
        """Remembers how many messages have ended; nothing at all for minutes is a failure."""
        now = time.monotonic()
        if not self.progress or self.progress[-1][1] != ended:
            self.moved = now
        elif now - self.moved > STALLED:
            raise SystemExit(f"bank: no message has ended for {STALLED} s; see {self.path('host-0.log')}")
        self.progress.append((round(now - self.begun, 2), ended))

    def settle(self, hosts):
        """What came of it, as one report."""
        receipts = [json.loads(record["data"]) if isinstance(record["data"], str) else record["data"]
                    for record in self.records("receipts")]
        dead = [(json.loads(record["data"]) if isinstance(record["data"], str) else record["data"], record)
                for record in self.records("transfers", "--dlq")]
        balances = self.store.balances()
        faults = bank_books.faults(self.options.accounts, self.sent, receipts,
                                   [(body["transfer"], json.dumps(record)) for body, record in dead], balances, REJECTED)
        report = {"store": self.store.name, "transfers": len(self.sent), "messages": self.messages,
                  "accounts": self.options.accounts, "opening": self.options.accounts * bank_books.OPENING,
                  "closing": sum(balances.values()), "receipts": len(receipts), "refused": len(dead),
                  "hosts": self.options.hosts, "kills": dict(hosts.kills), "lost": self.store.lost(),
                  "seconds": round(time.monotonic() - self.begun, 1), "faults": faults,
                  "progress": self.progress, "events": [(round(at - self.begun, 2), what) for at, what in hosts.events]}
        with open(self.path("report.json"), "w", encoding="utf-8") as file:
            json.dump(report, file)
        return report

    def records(self, queue, *half):
        return [json.loads(line) for line in self.sluice("export", "--queue", queue, "--consistent", *half).splitlines()]


def main():
    parser = argparse.ArgumentParser(prog="./dev run --bank", description=__doc__.split("\n")[0])
    parser.add_argument("--dynamodb", action="store_true", help="in the DynamoDB emulator, behind a gate that loses answers")
    parser.add_argument("--transfers", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=0, help="go on for at least so long, with more transfers")
    parser.add_argument("--accounts", type=int, default=100)
    parser.add_argument("--hosts", type=int, default=3)
    parser.add_argument("--rate", type=int, default=150, help="messages a second that one host works on")
    parser.add_argument("--pause", type=float, default=0.7, help="seconds between two kills, about")
    parser.add_argument("--kills", type=int, default=0, help="go on until so many hosts were killed")
    parser.add_argument("--twice", type=float, default=0.1, help="the part of transfers that is sent twice, with one idempotency key")
    parser.add_argument("--lose", type=float, default=0.03, help="with --dynamodb: the part of answers that are lost")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sluice", default="build/release/bin/sluice", help=argparse.SUPPRESS)
    parser.add_argument("--plugins", default="build/release/plugins", help=argparse.SUPPRESS)
    parser.add_argument("--folder", default="var/bank", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.sluice = os.path.abspath(options.sluice)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit("bank: stopped"))
    bank = Bank(options)
    try:
        report = bank.run()
    finally:
        bank.store.close()
    print(bank_books.text(report))
    return 1 if report["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())
