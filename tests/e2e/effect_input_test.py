#!/usr/bin/env python3
"""Bad input of effects, keys, groups and schedules: each gets one clear line with the mend where its author looks,
nothing of the transaction is committed, and no other message is disturbed; on both stores."""

import json
import sqlite3

from support import Case, main, until

LAST_TRY = "[job.retry]\nmax_attempts = 1\n"
KEYED = '[job.idempotency]\nkey = "body:/order/id"\n'


class EffectInputSqlite(Case):
    def setUp(self):
        super().setUp()
        self.make_tables()

    def make_tables(self):
        for queue in ("orders", "receipts"):
            self.sluice("send", "--queue", queue, "--id", "first", "--data", "1", "--create", check=True)
            self.sluice("delete", "first", "--queue", queue, check=True)
        with sqlite3.connect(self.path("sluice.db")) as file:
            file.execute("CREATE TABLE accounts (id TEXT PRIMARY KEY, balance INTEGER)")
            file.execute("INSERT INTO accounts VALUES ('a', 0)")

    def balance(self):
        with sqlite3.connect(self.path("sluice.db")) as file:
            return file.execute("SELECT balance FROM accounts WHERE id = 'a'").fetchone()[0]

    good = {"sql": "UPDATE accounts SET balance = 1"}

    def work_off(self, *messages, extra=LAST_TRY):
        """Sends messages, each an id, a body and what its handler does, and has one host work them off."""
        self.write_job("effect_of", extra=extra)
        for message, body, attributes in messages:
            words = [word for name, value in attributes.items() for word in ("--attr", f"{name}={value}")]
            self.sluice("send", "--queue", "orders", "--id", message, "--data", body, *words, check=True)
        run = self.start("--until-empty")
        self.assertEqual(0, run.wait(), run.log())
        return run

    def failure(self, message):
        """Of a message that lies in the DLQ."""
        shown = json.loads(self.sluice("get", message, "--queue", "orders", "--json", check=True).stdout)
        self.assertEqual("DLQ", shown["queue_type"], shown)
        return shown["failure"]

    def refused(self, *phrases, body="1", extra=LAST_TRY, **attributes):
        """It ends in the DLQ, with one line that says all of these, and a good one beside it is done."""
        self.work_off(("bad", body, attributes), ("good", '{"order": {"id": "g"}}', self.good), extra=extra)
        failure = self.failure("bad")
        self.assert_one_line(failure["error"], *phrases)
        self.assertEqual(1, self.balance(), "the good one is done; of the bad one nothing is committed")
        self.assertEqual(0, self.stats("receipts")["total"])
        self.assertEqual(0, self.stats("orders")["total"])
        return failure

    def sent(self, **attributes):
        """What its handler asks for is committed."""
        self.work_off(("fine", "1", attributes))
        return json.loads(self.sluice("ls", "--queue", "receipts", "--json", check=True).stdout)["statuses"]

    def test_a_statement_on_a_table_that_is_not_there(self):
        self.refused('write "change" was refused', "no such table: nobodys; make it .* or mend the name",
                     sql="UPDATE nobodys SET x = 1")

    def test_a_statement_on_our_own_tables(self):
        self.refused('write "change" on table sluice_messages', "not yours", sql="UPDATE sluice_messages SET body = 'x'")

    def test_two_statements_in_one(self):
        self.refused('write "change" on table accounts', "more than one statement; stage each",
                     sql="UPDATE accounts SET balance = 9; DELETE FROM accounts")

    def test_a_statement_that_is_no_sql(self):
        self.refused('write "change"', "syntax error; mend the statement", sql="UPDAET accounts")

    def test_a_condition_that_fails(self):
        self.refused('write "change" on table accounts', "changed 0 rows and had to change 1: UPDATE accounts .*'zoe'",
                     "mend the data or the condition before the attempts run out, or .* otherwise_reject",
                     sql="UPDATE accounts SET balance = 9 WHERE id = 'zoe'", rows="1")

    def test_a_condition_that_fails_for_good(self):
        self.refused('write "change" on table accounts', "changed 0 rows and had to change 1: UPDATE accounts .*'zoe'",
                     "mend the data or the condition, then redrive the message", extra="",
                     sql="UPDATE accounts SET balance = 9 WHERE id = 'zoe'", rows="1", reject="yes")

    def test_a_write_for_the_other_store(self):
        self.refused("in table accounts, but the job's queue lies in SQLite: write a row", table="accounts",
                     set="balance = :n")

    def test_a_hundred_and_one_actions(self):
        self.refused("message to receipts is one too many: .* at most 100 actions", "send the rest to a queue",
                     to="receipts", copies="101")

    def test_a_message_to_a_queue_that_nobody_knows(self):
        self.refused("message .*to queue reciepts was refused", r'a queue "reciepts"; did you mean "receipts"\?',
                     r"\[queues\] create = true", extra="", to="reciepts")
        self.assertNotIn("reciepts", self.sluice("queues", "--json", check=True).stdout)

    def test_a_message_to_a_queue_that_is_not_in_reach(self):
        self.write_host('[stores.other]\nkind = "sqlite"\npath = "other.db"\n[queues.elsewhere]\nstore = "other"\n')
        self.refused("message .*to queue elsewhere was refused", 'store "other"', "orders in the default store",
                     r"give \[queues.elsewhere\] the store", to="elsewhere")
        shown = self.sluice("queues", "--json", check=True).stdout
        self.assertEqual(1, shown.count('"elsewhere"'), shown)

    def test_a_deduplication_id_of_ten_kilobytes(self):
        self.refused("deduplication id of 10000 bytes: at most 1024", "hash", to="receipts", dedup="k" * 10_000)

    def test_a_group_of_no_bytes(self):
        self.assertEqual(1, len(self.sent(to="receipts", group_bytes="0")))

    def test_a_group_of_a_megabyte(self):
        self.assertEqual(1, len(self.sent(to="receipts", group_bytes="1000000")))

    def test_a_duplicate_is_accepted_and_the_rest_is_committed(self):
        twice = {"to": "receipts", "dedup": "order-7"}
        self.work_off(("one", "1", twice), ("two", "2", {**twice, **self.good}))
        self.assertEqual(1, self.balance())
        self.assertEqual(1, self.stats("receipts")["total"])
        self.assertEqual(0, self.stats("orders")["dlq"])

    def test_a_key_that_is_not_there(self):
        failure = self.refused("no idempotency key", "nothing at '/order/id'", 'on_missing = "run"',
                               body='{"order": {}}', extra=LAST_TRY + KEYED, **self.good)
        self.assertNotIn("attempts", {name for name, value in failure.items() if value}, "no handler has seen it")

    def test_a_key_that_is_not_there_and_may_be_missing(self):
        self.work_off(("one", '{"order": {}}', self.good), extra=LAST_TRY + KEYED + 'on_missing = "run"\n')
        self.assertEqual(1, self.balance())

    def test_a_key_of_ten_kilobytes(self):
        body = json.dumps({"order": {"id": "k" * 10_000}})
        self.work_off(("one", body, self.good), extra=LAST_TRY + KEYED)
        self.work_off(("two", body, {"to": "receipts"}), extra=LAST_TRY + KEYED)
        self.assertEqual(1, self.balance())
        self.assertEqual(0, self.stats("receipts")["total"], "it is a duplicate")
        keys = json.loads(self.sluice("keys", "list", "orders", check=True).stdout)["keys"]
        self.assertEqual(["k" * 64 + "...sha256:"], [key["key"][:74] for key in keys])

    def test_a_schedule_that_is_never_due(self):
        self.write_job("effect_of", extra='[schedule.never]\ncron = "0 0 31 2 *"\n')
        done = self.sluice("check")
        self.assertEqual(78, done.returncode)
        self.assertRegex(done.stdout + done.stderr, r"orders.toml:\d+:\d+: 'cron' in \[schedule.never\] is never due: "
                                                    r"FEB has 29 days at most; take another day")

    def test_two_hosts_with_one_schedule_differently(self):
        self.write_job("effect_of", extra='[schedule.tick]\nevery = "1h"\nbody = "1"\n')
        first = self.start()
        until("the first one has told", lambda: self.schedule()["told_by"])
        self.write("host-2.toml", open(self.path("host.toml"), encoding="utf-8").read().replace(
            'name = "e2e"', 'name = "other"\nstate_dir = "var2"'))
        self.write_job("effect_of", extra='[schedule.tick]\nevery = "2h"\nbody = "1"\n')
        second = self.start("--config", "host-2.toml", report="second.json")
        until("the second one says so", lambda: "is not the same everywhere" in second.log())
        line = next(line for line in second.log().splitlines() if "is not the same everywhere" in line)
        for phrase in ("every 2h", "on host e2e", "every 1h", "Make the files the same and reload"):
            self.assertIn(phrase, line)
        until("the first one is told, long before it has something to send",
              lambda: "is not the same everywhere" in first.log())
        line = next(line for line in first.log().splitlines() if "is not the same everywhere" in line)
        for phrase in ("every 1h", "on host other", "every 2h", "Make the files the same and reload"):
            self.assertIn(phrase, line)
        for run in (first, second):
            self.assertEqual(0, run.stop(), run.log())
        self.write_job("effect_of", extra='[schedule.tick]\nevery = "1h"\nbody = "1"\n')
        self.assertEqual("other", self.schedule()["differs_on"])

    def schedule(self):
        jobs = json.loads(self.sluice("jobs", "--json", check=True).stdout)
        return next(job for job in jobs if job["job"] == "orders")["schedules"][0]

    def test_jobs_show_what_was_sent_and_what_was_missed(self):
        self.write_job("effect_of", extra='[schedule.tick]\nevery = "1h"\nbody = "1"\n')
        before = self.schedule()
        self.assertEqual((None, 0, None, "last"),
                         (before["last"], before["missed"], before["told_by"], before["catch_up"]))
        self.assertEqual(3, len(before["next"]))
        run = self.start()
        until("the host has told", lambda: self.schedule()["told_by"])
        self.assertEqual(0, run.stop(), run.log())
        self.assertEqual(0, self.schedule()["missed"])
        text = self.sluice("jobs", "--output", "text", check=True).stdout
        self.assertRegex(text, r"schedule tick: every 1h to queue orders; last never; next \d{4}-")


class EffectInputDynamo(EffectInputSqlite):
    store = "dynamodb"

    def write_host(self, extra="", **words):
        super().write_host(extra + '[queues.receipts]\ntable = "receipts"\n', **words)
    good = {"table": "accounts", "set": "balance = :n"}

    def make_tables(self):
        self.sluice("table", "create", "--queue", "receipts", check=True)
        self.emulator.call("CreateTable", TableName="accounts", BillingMode="PAY_PER_REQUEST",
                           KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
                           AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}])

    def balance(self):
        item = self.emulator.call("GetItem", TableName="accounts", Key={"id": {"S": "a"}}, ConsistentRead=True)
        return int(item.get("Item", {}).get("balance", {"N": "0"})["N"])

    def test_a_statement_on_a_table_that_is_not_there(self):
        self.refused('write "change" on table nobodys', "does not exist in this region; create it, or mend its name",
                     table="nobodys", set="balance = :n")

    def test_a_statement_on_our_own_tables(self):
        self.skipTest("DynamoDB's tables are the account's; roles say who may write them")

    def test_two_statements_in_one(self):
        self.refused("update in table accounts: effect 1 writes the same item", "put both into one write",
                     table="accounts", set="balance = :n", copies="2")

    def test_a_statement_that_is_no_sql(self):
        self.refused('write "change" on table accounts was refused', "UpdateExpression", "mend what the handler stages",
                     table="accounts", set="balance = = :n")

    def test_a_condition_that_fails(self):
        self.refused('write "change" on table accounts was refused: its condition does not hold: balance > :n; mend',
                     "mend the data or the condition before the attempts run out, or .* otherwise_reject",
                     table="accounts", set="balance = :n", when="balance > :n")

    def test_a_condition_that_fails_for_good(self):
        self.refused('write "change" on table accounts was refused: its condition does not hold: balance > :n; mend',
                     "mend the data or the condition, then redrive the message", extra="",
                     table="accounts", set="balance = :n", when="balance > :n", reject="yes")

    def test_a_write_for_the_other_store(self):
        self.refused("the SQL statement .*, but the job's queue lies in DynamoDB: put, update", sql="SELECT 1")

    def test_a_group_of_a_megabyte(self):
        self.refused("a message to receipts of 1000001 bytes: DynamoDB holds 409600; keep what is larger elsewhere",
                     to="receipts", group_bytes="1000000")


if __name__ == "__main__":
    main()
