#!/usr/bin/env python3
"""The bank of `./dev run --bank`, small: hosts are killed and answers are lost, and not a cent is missing."""

import json
import os
import subprocess
import sys
import tempfile
import shutil
import unittest

import support

DEMO = os.path.join(support.SOURCE, "config", "demo")
sys.path.insert(0, DEMO)
import bank_books


class BankBooks(unittest.TestCase):
    """Each way in which the books can be wrong is seen."""

    def setUp(self):
        self.sent = [{"transfer": "t-1", "from": "acct-000", "to": "acct-001", "amount": 10},
                     {"transfer": "t-2", "from": "acct-001", "to": "acct-000", "amount": 5000}]
        self.receipts = [dict(self.sent[0])]
        self.dead = [("t-2", 'write "debit" was refused')]
        self.balances = {"acct-000": 990, "acct-001": 1010}

    def faults(self):
        return "\n".join(bank_books.faults(2, self.sent, self.receipts, self.dead, self.balances, "debit"))

    def test_books_that_add_up(self):
        self.assertEqual("", self.faults())

    def test_a_receipt_twice(self):
        self.receipts *= 2
        self.assertIn("t-1 has 2 receipts", self.faults())

    def test_a_receipt_lost(self):
        self.receipts.clear()
        self.assertIn("t-1 has neither", self.faults())

    def test_a_transfer_applied_twice(self):
        self.balances = {"acct-000": 980, "acct-001": 1020}
        self.assertIn("acct-000 has 980, and by its receipts 990", self.faults())

    def test_money_that_comes_or_goes(self):
        self.balances["acct-000"] = 989
        self.assertIn("2,000 were paid in, and 1,999 are there", self.faults())

    def test_a_transfer_given_up_for_another_reason(self):
        self.dead = [("t-2", "all attempts are used up")]
        self.assertIn("t-2 was given up for another reason", self.faults())

    def test_an_overdrawn_account(self):
        self.balances = {"acct-000": -5, "acct-001": 2005}
        self.assertIn("overdrawn", self.faults())


class BankSqlite(unittest.TestCase):
    words = ()

    def test_not_a_cent_is_lost(self):
        folder = tempfile.mkdtemp(prefix="sluice-bank-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        command = [sys.executable, os.path.join(DEMO, "bank.py"), "--sluice", support.SLUICE, "--plugins", support.SHIPPED_PLUGINS,
                   "--folder", os.path.join(folder, "bank"), "--transfers", "600", "--accounts", "20", "--hosts", "2",
                   "--kills", "12", *self.words]
        done = subprocess.run(command, capture_output=True, text=True, check=False,
                              env=dict(os.environ, SLUICE_EMULATOR=support.EMULATOR))
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        with open(os.path.join(folder, "bank", "report.json"), encoding="utf-8") as file:
            report = json.load(file)
        self.assertEqual([], report["faults"])
        self.assertGreaterEqual(report["transfers"], 600)
        self.assertGreater(report["messages"], report["transfers"], "some were sent twice")
        self.assertGreaterEqual(sum(report["kills"].values()), 12)
        self.assertGreater(report["receipts"], 0)
        self.check(report)

    def check(self, report):
        pass


class BankDynamo(BankSqlite):
    words = ("--dynamodb", "--lose", "0.05")

    def setUp(self):
        if not os.access(support.EMULATOR, os.X_OK):
            self.skipTest("SKIPPED: no DynamoDB emulator; ./dev deps installs it")

    def check(self, report):
        self.assertGreater(report["lost"]["transactions"], 0, "an answer to a transaction was lost")


if __name__ == "__main__":
    support.main()
