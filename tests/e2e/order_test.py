#!/usr/bin/env python3
"""Order within groups by four hosts on one SQLite file, and on one leased table, each a process of its own, while others
send side by side, and import.

A few thousand messages where all tests run; SLUICE_ORDER_MESSAGES=1000000 SLUICE_ORDER_GROUPS=10000 for a long run, which
SLUICE_TEST_PATIENCE, in seconds, must allow for.
"""

import collections
import json
import os
import subprocess
import threading
import time

from support import SLUICE, Case, main, until

MESSAGES = int(os.environ.get("SLUICE_ORDER_MESSAGES", "6000"))
GROUPS = int(os.environ.get("SLUICE_ORDER_GROUPS", "300"))
HOSTS = 4
PIECES = 4
SENT_GROUPS = 6
SENT_EACH = 200
RETRY_EACH = 97


class OrderCase(Case):
    def start_hosts(self):
        text = self.read("host.toml").replace('level = "debug"', 'level = "warn"')
        for number in range(HOSTS):
            self.write(f"host-{number}.toml", text.replace('name = "e2e"', f'name = "host-{number}"'))
        self.write_job("turns", options=f'path = "{self.path("turns")}"\nretry_each = {RETRY_EACH}',
                       extra='order = "group"\nconcurrency = 16\n[job.retry]\nbase = "10ms"\nmax = "50ms"')
        return [self.start("--config", f"host-{number}.toml", report=f"report-{number}.json")
                for number in range(HOSTS)]

    def end_hosts(self, hosts):
        until("the queue is empty", lambda: self.stats()["total"] == 0)
        for host in hosts:
            self.assertEqual(0, host.stop(), host.log())
        return [host.report()["total"]["done"] for host in hosts]

    def start_senders(self):
        """Each sends to one group, as fast as it can."""
        for group in range(SENT_GROUPS):
            name = f"sent-{group}.jsonl"
            self.write(name, "".join(f'"s{group} {number}"\n' for number in range(SENT_EACH)))
            with open(self.path(name), encoding="utf-8") as lines:
                yield subprocess.Popen([SLUICE, "send", "--queue", "orders", "--group", f"s{group}", "-"], stdin=lines,
                                       cwd=self.folder, env=self.environment, stdout=subprocess.DEVNULL)

    def attempts(self):
        """Of each group, in the order in which they began: number, begin, end, fate."""
        groups = collections.defaultdict(list)
        with open(self.path("turns"), encoding="ascii") as file:
            for line in file:
                group, number, began, ended, fate = line.split()
                groups[group].append((int(began), int(ended), int(number), fate))
        for attempts in groups.values():
            attempts.sort()
        return groups

    def assert_in_order(self, group, attempts, count):
        expected = []
        for number in range(count):
            expected += [(number, "retry")] if number % RETRY_EACH == 0 else []
            expected.append((number, "done"))
        self.assertEqual(expected, [(number, fate) for _, _, number, fate in attempts], group)
        for before, after in zip(attempts, attempts[1:]):
            self.assertLessEqual(before[1], after[0], f"{group}: {after} began before {before} had ended")

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()


class OrderSqlite(OrderCase):
    def records(self, first, end):
        """Messages number `first` to `end` as `sluice import` reads them, one group after the other."""
        at = 1_700_000_000_000_000_000
        lines = []
        for number in range(first, end):
            seconds, rest = divmod(at + number * 1_000, 1_000_000_000)
            stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest:09d}Z"
            lines.append(json.dumps({
                "id": f"m{number}", "data": f"i{number % GROUPS} {number // GROUPS}", "receive_count": 0,
                "queue_type": "STANDARD", "version": 1, "created_at": stamp, "updated_at": stamp, "sent_at": stamp,
                "received_at": "", "invisible_until_at": "", "content_type": "text/plain", "attributes": {},
                "group": f"i{number % GROUPS}"}))
        return "\n".join(lines) + "\n"

    def import_piece(self, piece):
        lines = self.records(piece * MESSAGES // PIECES, (piece + 1) * MESSAGES // PIECES)
        self.sluice("import", "--queue", "orders", "-", data=lines, check=True)

    def test_each_group_is_worked_on_in_its_order_by_four_hosts(self):
        self.write_host(visibility="60s")
        self.import_piece(0)
        hosts = self.start_hosts()
        senders = list(self.start_senders())
        for piece in range(1, PIECES):
            self.import_piece(piece)
        for sender in senders:
            self.assertEqual(0, sender.wait())
        done = self.end_hosts(hosts)
        self.assertEqual(MESSAGES + SENT_GROUPS * SENT_EACH, sum(done))
        groups = self.attempts()
        self.assertEqual(GROUPS + SENT_GROUPS, len(groups))
        for group, attempts in groups.items():
            number = int(group[1:])
            count = SENT_EACH if group[0] == "s" else (MESSAGES - number + GROUPS - 1) // GROUPS
            self.assert_in_order(group, attempts, count)
        print(f"{sum(done)} messages in {len(groups)} groups in order, done by the hosts: {done}")


class OrderLeased(OrderCase):
    store = "dynamodb"
    PRODUCERS = 8
    EACH = 60

    def write_host(self, extra="", **words):
        super().write_host('layout = "leased"\nshards = 4\n' + extra, **words)

    def produce(self, group):
        """Sends one message after the other, each when the one before has been answered."""
        words = [SLUICE, "send", "--queue", "orders", "--group", group, "-"]
        with subprocess.Popen(words, cwd=self.folder, env=self.environment, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as process:
            for number in range(self.EACH):
                process.stdin.write(f'"{group} {number}"\n')
                process.stdin.flush()
                process.stdout.readline()
            process.stdin.close()

    def test_each_group_is_worked_on_in_its_order_while_producers_send_side_by_side(self):
        self.write_host(visibility="60s")
        hosts = self.start_hosts()
        senders = list(self.start_senders())
        producers = [threading.Thread(target=self.produce, args=(f"p{number}",)) for number in range(self.PRODUCERS)]
        for producer in producers:
            producer.start()
        for producer in producers:
            producer.join()
        for sender in senders:
            self.assertEqual(0, sender.wait())
        done = self.end_hosts(hosts)
        groups = self.attempts()
        self.assertEqual(SENT_GROUPS + self.PRODUCERS, len(groups))
        for group, attempts in groups.items():
            self.assert_in_order(group, attempts, SENT_EACH if group[0] == "s" else self.EACH)
        self.assertEqual(SENT_GROUPS * SENT_EACH + self.PRODUCERS * self.EACH, sum(done))


if __name__ == "__main__":
    main()
