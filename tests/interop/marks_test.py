"""What this host puts beside messages on a DynamoMQ table, seen by an independent client (boto3): marks of deduplication
ids and unique keys, idempotency keys, what schedules leave, and the TTL that removes them. None of it may lie in the
index, where DynamoMQ's Go programs look, nor have an attribute of theirs but `id`.

Exit status 77: boto3 or the emulator is absent, nothing was checked.
"""

import hashlib
import json
import os
import re
import sys
import time
from datetime import datetime

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))

try:
    import boto3
except ImportError:
    print("SKIPPED: boto3 is absent (Debian: python3-boto3); marks and keys are NOT checked")
    sys.exit(77)

from support import EMULATOR, INDEX, TABLE, Case, main, until  # noqa: E402

if not os.access(EMULATOR, os.X_OK):
    print("SKIPPED: no DynamoDB emulator; ./dev deps installs it")
    sys.exit(77)

MADE_OF = {"queue_type", "sent_at", "created_at", "updated_at", "status", "receive_count", "version", "data"}
TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")


class Marks(Case):
    store = "dynamodb"

    def setUp(self):
        super().setUp()
        self.db = boto3.client("dynamodb", endpoint_url=self.emulator.endpoint, region_name="eu-west-1",
                               aws_access_key_id="test", aws_secret_access_key="test")

    def items(self, prefix=""):
        """What lies in the table under such ids, by id."""
        found = self.db.scan(TableName=TABLE, ConsistentRead=True)["Items"]
        return {item["id"]["S"]: item for item in found if item["id"]["S"].startswith(prefix)}

    def indexed(self):
        """The ids that Go programs see."""
        seen = set()
        for half in ("STANDARD", "DLQ"):
            page = self.db.query(TableName=TABLE, IndexName=INDEX, KeyConditionExpression="queue_type = :half",
                                 ExpressionAttributeValues={":half": {"S": half}})
            seen |= {item["id"]["S"] for item in page["Items"]}
        return seen

    def send(self, message, *words):
        return self.sluice("send", "--queue", "orders", "--id", message, "--data", "1", *words, check=True).stdout.strip()

    def assert_beside(self, item, life):
        """It is nobody's message, and goes by itself about so many seconds from now."""
        self.assertFalse(MADE_OF & set(item), item)
        self.assertNotIn(item["id"]["S"], self.indexed())
        self.assertAlmostEqual(time.time() + life, int(item["sluice_key_expires"]["N"]), delta=2 * 3600)

    def test_a_deduplication_id_leaves_a_mark_that_says_who_was_first(self):
        self.assertEqual("A-1", self.send("A-1", "--dedup-id", "order 7", "--dedup-window", "1h"))
        self.assertEqual("A-1", self.send("A-2", "--dedup-id", "order 7"))
        marks = self.items("sluice:dedup/")
        self.assertEqual(["sluice:dedup/order 7"], list(marks))
        mark = marks["sluice:dedup/order 7"]
        self.assertEqual({"id", "sluice_first", "sluice_token", "sluice_until", "sluice_key_expires"}, set(mark))
        self.assertEqual("A-1", mark["sluice_first"]["S"])
        self.assertRegex(mark["sluice_until"]["S"], TIME)
        self.assert_beside(mark, 3600)
        self.assertEqual({"A-1"}, self.indexed())
        # What is judged is what a mark says: one that DynamoDB has removed holds nobody up.
        self.db.delete_item(TableName=TABLE, Key={"id": {"S": "sluice:dedup/order 7"}})
        self.assertEqual("A-3", self.send("A-3", "--dedup-id", "order 7"))

    def test_one_whose_window_is_over_holds_nobody_up_though_it_is_there(self):
        self.send("A-1", "--dedup-id", "order 7")
        self.db.update_item(TableName=TABLE, Key={"id": {"S": "sluice:dedup/order 7"}},
                            UpdateExpression="SET sluice_until = :then",
                            ExpressionAttributeValues={":then": {"S": "2020-01-01T00:00:00.000000000Z"}})
        self.assertEqual("A-2", self.send("A-2", "--dedup-id", "order 7"))
        self.assertEqual("A-2", self.items("sluice:dedup/")["sluice:dedup/order 7"]["sluice_first"]["S"])

    def test_a_unique_key_is_free_when_a_go_program_has_deleted_its_message(self):
        self.send("A-1", "--unique-key", "order 7")
        self.assertEqual("A-1", self.send("A-2", "--unique-key", "order 7"))
        mark = self.items("sluice:unique/")["sluice:unique/order 7"]
        self.assertEqual({"id", "sluice_first", "sluice_token", "sluice_mode", "sluice_key_expires"}, set(mark))
        self.assertEqual("done", mark["sluice_mode"]["S"])
        self.assert_beside(mark, 14 * 24 * 3600)
        self.db.delete_item(TableName=TABLE, Key={"id": {"S": "A-1"}})
        self.assertEqual("A-3", self.send("A-3", "--unique-key", "order 7"))

    def test_a_message_that_is_an_effect_leaves_the_same_mark(self):
        self.sluice("table", "create", "--table", "receipts", "--endpoint", self.emulator.endpoint, check=True)
        self.write_host('[queues.receipts]\ntable = "receipts"\n')
        self.write_job("effect_of")
        for message in ("A-1", "A-2"):
            self.send(message, "--attr", "to=receipts", "--attr", "dedup=order 7")
        self.assertEqual(0, self.start("--until-empty").wait())
        found = self.db.scan(TableName="receipts", ConsistentRead=True)["Items"]
        messages = [item for item in found if "queue_type" in item]
        marks = [item for item in found if item["id"]["S"].startswith("sluice:dedup/")]
        self.assertEqual((1, 1), (len(messages), len(marks)), found)
        self.assertEqual(messages[0]["id"], marks[0]["sluice_first"])

    def test_an_idempotency_key_is_marked_and_recorded(self):
        self.write_job("sleeper", options='duration = "1h"', extra='[job.idempotency]\nkey = "attribute:order"\n')
        self.send("A-1", "--attr", "order=7")
        run = self.start()
        name = "sluice:key/orders/" + hashlib.sha256(b"7").hexdigest()
        until("the key is marked", lambda: name in self.items("sluice:key/"))
        mark = self.items("sluice:key/")[name]
        self.assertEqual(b"7", mark["sluice_key"]["B"])
        self.assertEqual("A-1", mark["sluice_key_owner"]["S"])
        self.assertNotIn("sluice_key_done", mark)
        self.assertIn("sluice_key_fence", mark)
        self.assert_beside(mark, 0)
        run.process.kill()
        run.wait()
        self.write_job("noop", extra='[job.idempotency]\nkey = "attribute:order"\nttl = "30h"\n')
        self.send("A-2", "--attr", "order=8")
        done = "sluice:key/orders/" + hashlib.sha256(b"8").hexdigest()
        run = self.start()
        until("the key is done", lambda: self.items("sluice:key/").get(done, {}).get("sluice_key_done"))
        self.assertEqual(0, run.stop(), run.log())
        record = self.items("sluice:key/")[done]
        self.assertTrue(record["sluice_key_done"]["BOOL"])
        self.assertNotIn("sluice_key_fence", record)
        self.assertAlmostEqual((time.time() + 30 * 3600) * 1000, int(record["sluice_key_until"]["N"]), delta=600_000)
        self.assert_beside(record, 30 * 3600)

    def test_a_schedule_leaves_a_mark_for_each_time_and_a_note_of_the_last(self):
        self.write_job("noop", extra='[schedule.tick]\nevery = "1s"\nbody = "1"\n')
        run = self.start()
        until("it was sent twice", lambda: len(self.items("sluice:dedup/schedule/tick/")) >= 2)
        self.assertEqual(0, run.stop(), run.log())
        for name, mark in self.items("sluice:dedup/schedule/tick/").items():
            self.assertRegex(name.removeprefix("sluice:dedup/schedule/tick/"), TIME)
            self.assert_beside(mark, 24 * 3600)
        notes = [item for name, item in self.items("sluice:").items() if not name.startswith("sluice:dedup/")]
        told = [note for note in notes if any('"definition"' in value.get("S", "") for value in note.values())]
        self.assertEqual(1, len(told), notes)
        text = next(value["S"] for value in told[0].values() if '"definition"' in value.get("S", ""))
        self.assertEqual("e2e", json.loads(text)["host"])
        last = datetime.fromisoformat(json.loads(text)["last"])
        self.assertAlmostEqual(time.time(), last.timestamp(), delta=600)

    def test_the_table_removes_them_by_its_ttl(self):
        ttl = self.db.describe_time_to_live(TableName=TABLE)["TimeToLiveDescription"]
        self.assertEqual("sluice_key_expires", ttl["AttributeName"])
        self.assertIn(ttl["TimeToLiveStatus"], ("ENABLED", "ENABLING"))


if __name__ == "__main__":
    main()
