"""What this host writes into a DynamoMQ v0.11.0 table, seen by an independent client (boto3), and what DynamoMQ's Go
programs would make of it: their operations are restated here, request by request, and run against the same table.

Exit status 77: boto3 or the emulator is absent, nothing was checked.
"""

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import time
import unittest
from datetime import datetime, timedelta, timezone

try:
    import boto3
    from botocore.config import Config
    from botocore.exceptions import ClientError
except ImportError:
    print("SKIPPED: boto3 is absent (Debian: python3-boto3); compatibility with DynamoMQ is NOT checked")
    sys.exit(77)

INDEX = "dynamo-mq-index-queue_type-sent_at"
NINE_DIGITS = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$")
ARGUMENTS = None


def go_format(moment):
    """time.RFC3339Nano: trailing zeros of the fraction are trimmed."""
    text = moment.strftime("%Y-%m-%dT%H:%M:%S.%f").rstrip("0").rstrip(".")
    return text + "Z"


def go_parse(text):
    """As clock.RFC3339NanoToTime: garbage is the zero time."""
    match = re.match(r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)$", text or "")
    if not match:
        return None
    micros = int(((match.group(2) or "") + "000000")[:6])
    zone = match.group(3).replace("Z", "+00:00")
    return datetime.strptime(match.group(1) + zone, "%Y-%m-%dT%H:%M:%S%z") + timedelta(microseconds=micros)


class Conflict(Exception):
    """ConditionalCheckFailedError."""


class Go:
    """DynamoMQ's client, restated. `now` may be moved, as its injected clock can."""

    def __init__(self, dynamodb, table):
        self.db = dynamodb
        self.table = table
        self.ahead = timedelta()

    def now(self):
        return datetime.now(timezone.utc) + self.ahead

    def get(self, id):
        return self.db.get_item(TableName=self.table, Key={"id": {"S": id}}, ConsistentRead=True).get("Item")

    def send(self, id, data, delay=0, **more):
        if self.get(id):
            raise Conflict("duplicated")
        now = self.now()
        item = {
            "id": {"S": id}, "data": data, "receive_count": {"N": "0"}, "queue_type": {"S": "STANDARD"},
            "version": {"N": "1"}, "created_at": {"S": go_format(now)}, "updated_at": {"S": go_format(now)},
            "sent_at": {"S": go_format(now + timedelta(seconds=delay))}, "received_at": {"S": ""},
            "invisible_until_at": {"S": ""}, **more}
        self.db.put_item(TableName=self.table, Item=item)

    def ready(self, item):
        hidden = item.get("invisible_until_at", {}).get("S", "")
        if hidden == "":
            return True
        until = go_parse(hidden)
        return until is None or self.now() > until

    def update(self, item, sets, adds=""):
        names = {"#version": "version"}
        values = {":version": item.get("version", {"N": "0"}), ":one": {"N": "1"}}
        parts = []
        for name, value in sets.items():
            names["#" + name] = name
            values[":" + name] = value
            parts.append(f"#{name} = :{name}")
        try:
            return self.db.update_item(
                TableName=self.table, Key={"id": item["id"]}, ConditionExpression="#version = :version",
                UpdateExpression=f"ADD #version :one{adds} SET " + ", ".join(parts), ExpressionAttributeNames=names,
                ExpressionAttributeValues=values, ReturnValues="ALL_NEW")["Attributes"]
        except ClientError as error:
            if error.response["Error"]["Code"] == "ConditionalCheckFailedException":
                raise Conflict(str(error)) from error
            raise

    def receive(self, queue_type="STANDARD", timeout=30):
        start = {}
        while True:
            page = self.db.query(
                TableName=self.table, IndexName=INDEX, KeyConditionExpression="queue_type = :t",
                ExpressionAttributeValues={":t": {"S": queue_type}}, Limit=250, **start)
            for item in page["Items"]:
                if self.ready(item):
                    now = self.now()
                    return self.update(item, {
                        "updated_at": {"S": go_format(now)}, "received_at": {"S": go_format(now)},
                        "invisible_until_at": {"S": go_format(now + timedelta(seconds=timeout))}},
                        ", receive_count :one")
            if "LastEvaluatedKey" not in page:
                return None
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    def change_visibility(self, id, timeout):
        now = self.now()
        return self.update(self.get(id), {
            "updated_at": {"S": go_format(now)},
            "invisible_until_at": {"S": go_format(now + timedelta(seconds=timeout))}})

    def delete(self, id):
        self.db.delete_item(TableName=self.table, Key={"id": {"S": id}})

    def move_to_dlq(self, id):
        now = {"S": go_format(self.now())}
        return self.update(self.get(id), {
            "receive_count": {"N": "0"}, "queue_type": {"S": "DLQ"}, "updated_at": now, "sent_at": now,
            "received_at": {"S": ""}, "invisible_until_at": {"S": ""}})

    def redrive(self, id):
        item = self.get(id)
        if item["queue_type"]["S"] != "DLQ" or not self.ready(item):
            raise Conflict("state")
        now = {"S": go_format(self.now())}
        return self.update(item, {
            "queue_type": {"S": "STANDARD"}, "updated_at": now, "sent_at": now, "invisible_until_at": {"S": ""}})


class Emulator:
    def __init__(self, program):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.endpoint = f"http://127.0.0.1:{port}"
        self.process = subprocess.Popen([program, "--host", "127.0.0.1", "--port", str(port)],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.db = boto3.client(
            "dynamodb", endpoint_url=self.endpoint, region_name="eu-west-1", aws_access_key_id="AKIDEXAMPLE",
            aws_secret_access_key="secret", config=Config(retries={"max_attempts": 10}, proxies={}))
        deadline = time.monotonic() + 20
        while True:
            try:
                self.db.list_tables()
                return
            except Exception:  # pylint: disable=broad-except
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise


class Driver:
    """The store under test, in a process of its own."""

    def __init__(self, endpoint, table):
        self.process = subprocess.Popen([ARGUMENTS.driver, endpoint, table], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def call(self, op, **arguments):
        self.process.stdin.write(json.dumps({"op": op, **arguments}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the driver ended during {op}: {self.process.wait()}")
        return json.loads(line)

    def claim(self, type="STANDARD", max=10, visibility=30):
        answer = self.call("claim", type=type, max=max, visibility_ms=int(visibility * 1000))
        if "claims" not in answer:
            raise RuntimeError(answer)
        return answer["claims"]

    def settle(self, claim, action, type="STANDARD", **arguments):
        return self.call("settle", id=claim["id"], version=claim["version"], locator=claim["locator"], action=action,
                         type=type, **arguments)["status"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Compatibility(unittest.TestCase):
    emulator = None
    tables = 0

    def setUp(self):
        Compatibility.tables += 1
        self.table = f"compatibility-{Compatibility.tables}"
        self.driver = Driver(self.emulator.endpoint, self.table)
        self.addCleanup(self.driver.close)
        self.assertEqual(self.driver.call("create_table"), {"created": True})
        self.go = Go(self.emulator.db, self.table)

    def send(self, id="A-1", body="hello", **more):
        self.assertEqual(self.driver.call("send", id=id, body=body, **more)["status"], "sent")

    def check_shape(self, item, extra=()):
        """The attributes and types that DynamoMQ's message struct has; a missing or wrong one would read as zero."""
        types = {"id": "S", "receive_count": "N", "queue_type": "S", "version": "N", "created_at": "S",
                 "updated_at": "S", "sent_at": "S", "received_at": "S", "invisible_until_at": "S"}
        for name, kind in types.items():
            self.assertIn(name, item)
            self.assertEqual(list(item[name]), [kind], name)
        self.assertIn("data", item)
        for name in ("created_at", "updated_at", "sent_at"):
            self.assertRegex(item[name]["S"], NINE_DIGITS, name)
        for name in ("received_at", "invisible_until_at"):
            self.assertTrue(item[name]["S"] == "" or NINE_DIGITS.match(item[name]["S"]), item[name])
        self.assertEqual(set(item) - set(types) - {"data", "sluice_nonce"}, set(extra))

    def test_table_is_dynamomqs(self):
        table = self.emulator.db.describe_table(TableName=self.table)["Table"]
        self.assertEqual(table["KeySchema"], [{"AttributeName": "id", "KeyType": "HASH"}])
        index = table["GlobalSecondaryIndexes"][0]
        self.assertEqual(index["IndexName"], INDEX)
        self.assertEqual(index["KeySchema"], [{"AttributeName": "queue_type", "KeyType": "HASH"},
                                              {"AttributeName": "sent_at", "KeyType": "RANGE"}])
        self.assertEqual(index["Projection"], {"ProjectionType": "ALL"})
        self.assertEqual({(a["AttributeName"], a["AttributeType"]) for a in table["AttributeDefinitions"]},
                         {("id", "S"), ("queue_type", "S"), ("sent_at", "S")})

    def test_sent_item(self):
        self.send(body="grüße")
        item = self.go.get("A-1")
        self.check_shape(item)
        self.assertEqual(item["data"], {"S": "grüße"})
        self.assertEqual(item["receive_count"], {"N": "0"})
        self.assertEqual(item["version"], {"N": "1"})
        self.assertEqual(item["queue_type"], {"S": "STANDARD"})
        self.assertEqual(item["received_at"], {"S": ""})
        self.assertEqual(item["invisible_until_at"], {"S": ""})
        self.assertEqual(item["created_at"], item["sent_at"])
        self.assertEqual(item["created_at"], item["updated_at"])

    def test_json_becomes_native(self):
        self.send(body='{"n":12345678901234567890123456789012345678,"l":[1.5,true,null],"s":"x"}',
                  content_type="application/json")
        item = self.go.get("A-1")
        self.check_shape(item)
        self.assertEqual(item["data"], {"M": {
            "n": {"N": "12345678901234567890123456789012345678"},
            "l": {"L": [{"N": "1.5"}, {"BOOL": True}, {"NULL": True}]}, "s": {"S": "x"}}})

    def test_extra_attributes_are_the_named_ones(self):
        self.send(attributes={"trace": "1"}, group="g", content_type="text/csv")
        self.check_shape(self.go.get("A-1"), ("sluice_attributes", "sluice_group", "sluice_content_type"))

    def test_go_receives_ours_and_we_cannot_settle_it(self):
        self.send()
        received = self.go.receive()
        self.assertEqual(received["id"], {"S": "A-1"})
        self.assertEqual(received["version"], {"N": "2"})
        self.assertEqual(self.driver.claim(), [])
        self.go.delete("A-1")
        self.assertIsNone(self.go.get("A-1"))

    def test_delay_holds_for_go_too(self):
        self.send(delay_ms=60_000)
        item = self.go.get("A-1")
        self.assertEqual(item["sent_at"], item["invisible_until_at"])
        self.assertLess(item["created_at"]["S"], item["sent_at"]["S"])
        self.assertIsNone(self.go.receive())
        self.assertEqual(self.driver.claim(), [])
        self.go.ahead = timedelta(seconds=61)
        self.assertEqual(self.go.receive()["id"], {"S": "A-1"})

    def test_gos_delay_holds_for_us(self):
        self.go.send("A-1", {"S": "x"}, delay=60)
        self.assertEqual(self.driver.claim(), [])

    def test_our_claim_is_processing_for_go(self):
        self.send()
        claims = self.driver.claim()
        self.assertEqual(len(claims), 1)
        item = self.go.get("A-1")
        self.check_shape(item)
        self.assertEqual(item["version"], {"N": "2"})
        self.assertEqual(item["receive_count"], {"N": "1"})
        self.assertRegex(item["received_at"]["S"], NINE_DIGITS)
        self.assertRegex(item["invisible_until_at"]["S"], NINE_DIGITS)
        self.assertIsNone(self.go.receive())
        self.go.ahead = timedelta(seconds=31)
        again = self.go.receive()
        self.assertEqual(again["receive_count"], {"N": "2"})
        for action in ("remove", "retry", "release", "dead_letter"):
            self.assertEqual(self.driver.settle(claims[0], action), "lost", action)
        self.assertEqual(self.go.get("A-1"), again)

    def test_extend_is_seen_by_go_and_gos_change_ends_our_lease(self):
        self.send()
        claim = self.driver.claim()[0]
        extended = self.driver.call("extend", id="A-1", version=claim["version"], visibility_ms=120_000)
        self.assertEqual(extended, {"status": "applied", "version": 3})
        self.go.ahead = timedelta(seconds=60)
        self.assertIsNone(self.go.receive())
        self.go.change_visibility("A-1", 0)
        self.assertEqual(self.driver.call("extend", id="A-1", version=3, visibility_ms=1)["status"], "lost")

    def test_we_claim_what_go_sent(self):
        kinds = {"text": {"S": "x"}, "number": {"N": "9007199254740993"}, "map": {"M": {"a": {"SS": ["b"]}}},
                 "null": {"NULL": True}, "list": {"L": []}, "flag": {"BOOL": False}, "bytes": {"B": b"\x01"}}
        for id, data in kinds.items():
            self.go.send(id, data)
        claims = {claim["id"]: claim for claim in self.driver.claim()}
        self.assertEqual(set(claims), set(kinds))
        self.assertEqual(claims["number"]["body"], "9007199254740993")
        self.assertEqual(claims["map"]["body"], '{"a":["b"]}')
        self.assertEqual(claims["null"]["body"], "null")
        self.assertEqual(claims["text"]["content_type"], "text/plain")
        self.assertEqual(claims["bytes"]["content_type"], "application/octet-stream")
        for claim in claims.values():
            self.assertEqual(self.driver.settle(claim, "remove"), "applied")

    def test_retry_release_and_failure(self):
        self.send()
        claim = self.driver.claim()[0]
        self.assertEqual(self.driver.settle(claim, "retry", error="boom", handler="h", delay_ms=60_000), "applied")
        item = self.go.get("A-1")
        self.check_shape(item, ("sluice_failure",))
        self.assertEqual(item["sluice_failure"]["M"]["error"], {"S": "boom"})
        self.assertIsNone(self.go.receive())
        self.go.ahead = timedelta(seconds=61)
        received = self.go.receive(timeout=-120)
        self.assertEqual(received["receive_count"], {"N": "2"})
        self.go.ahead = timedelta()
        claim = self.driver.claim()[0]
        self.assertEqual(claim["attempt"], 2, "it stands in for Go's delivery, of which nobody knows what became")
        self.assertEqual(self.driver.settle(claim, "release"), "applied")
        item = self.go.get("A-1")
        self.check_shape(item, ("sluice_failure",))
        self.assertEqual(item["receive_count"], {"N": "1"})
        self.assertEqual(item["invisible_until_at"], {"S": ""})
        self.assertEqual(self.go.receive()["receive_count"], {"N": "2"})

    def test_our_dlq_is_gos(self):
        self.send()
        before = self.go.get("A-1")
        claim = self.driver.claim()[0]
        self.assertEqual(self.driver.settle(claim, "dead_letter", error="no", handler="h"), "applied")
        item = self.go.get("A-1")
        self.check_shape(item, ("sluice_failure",))
        self.assertEqual(item["queue_type"], {"S": "DLQ"})
        self.assertEqual(item["receive_count"], {"N": "0"})
        self.assertEqual(item["received_at"], {"S": ""})
        self.assertEqual(item["invisible_until_at"], {"S": ""})
        self.assertEqual(item["sent_at"], item["updated_at"])
        self.assertEqual(item["created_at"], before["created_at"])
        self.assertIsNone(self.go.receive())
        self.assertEqual(self.go.receive("DLQ", timeout=-1)["id"], {"S": "A-1"})
        self.go.redrive("A-1")
        self.assertEqual(self.driver.claim()[0]["id"], "A-1")

    def test_gos_dlq_is_ours(self):
        self.go.send("A-1", {"S": "x"}, theirs={"S": "kept"})
        self.go.receive()
        self.go.move_to_dlq("A-1")
        self.assertEqual(self.driver.claim(), [])
        claim = self.driver.claim(type="DLQ")[0]
        self.assertEqual(claim["attempt"], 1)
        self.assertEqual(self.driver.call("redrive", id="A-1")["error"], "conflict")
        self.assertEqual(self.driver.settle(claim, "retry", type="DLQ"), "applied")
        self.assertEqual(self.driver.call("redrive", id="A-1"), {"ok": True})
        item = self.go.get("A-1")
        self.assertEqual(item["queue_type"], {"S": "STANDARD"})
        self.assertEqual(item["receive_count"], {"N": "0"})
        self.assertEqual(item["received_at"], {"S": ""})
        self.assertEqual(item["theirs"], {"S": "kept"})
        self.assertEqual(self.go.receive()["id"], {"S": "A-1"})

    def test_one_id_is_one_message(self):
        self.go.send("A-1", {"S": "x"})
        self.assertEqual(self.driver.call("send", id="A-1", body="y")["status"], "duplicate")
        self.send(id="A-2")
        with self.assertRaises(Conflict):
            self.go.send("A-2", {"S": "y"})

    def test_gos_unconditional_delete_makes_us_lose(self):
        self.send()
        claim = self.driver.claim()[0]
        self.go.delete("A-1")
        for action in ("remove", "retry", "dead_letter"):
            self.assertEqual(self.driver.settle(claim, action), "lost", action)
        self.assertIsNone(self.go.get("A-1"), "and nothing comes back to life")

    def test_gos_stale_snapshot_is_refused_by_our_version(self):
        self.send()
        snapshot = self.go.get("A-1")
        self.driver.claim()
        with self.assertRaises(Conflict):
            self.go.update(snapshot, {"updated_at": {"S": go_format(self.go.now())}})

    ODD = {"M": {"n": {"N": "0.12345678901234567890123"}, "s": {"SS": ["a", "b"]}, "b": {"B": b"\x00\xff"},
                 "l": {"L": [{"NS": ["1", "2"]}, {"N": "9007199254740993"}]}}}

    def edit(self, *edits, id="A-1"):
        return self.driver.call("edit", id=id, edits=[
            {"path": path, **({} if value is None else {"json": json.dumps(value)})} for path, value in edits])

    def test_edit_keeps_everything_else(self):
        self.go.send("A-1", {"N": "1"}, theirs={"NS": ["1", "2"]})
        before = self.go.get("A-1")
        self.assertEqual(self.edit((["data"], "new")), {"version": 2})
        after = self.go.get("A-1")
        self.assertEqual(after["data"], {"S": "new"})
        self.assertEqual(after["sluice_content_type"], {"S": "application/json"})
        for name in ("theirs", "created_at", "sent_at", "receive_count", "queue_type", "received_at"):
            self.assertEqual(after[name], before[name], name)

    def test_edit_of_a_path_keeps_the_types_beside_it(self):
        self.go.send("A-1", self.ODD)
        self.assertEqual(self.edit((["data", "l", 1], 5), (["data", "new"], {"x": [1]}), (["data", "b"], None),
                                   (["data", "l", 2], "appended"), (["attributes", "who"], "me"),
                                   (["group"], "g")), {"version": 2})
        after = self.go.get("A-1")
        self.assertEqual(after["data"], {"M": {
            "n": {"N": "0.12345678901234567890123"}, "s": {"SS": ["a", "b"]},
            "l": {"L": [{"NS": ["1", "2"]}, {"N": "5"}, {"S": "appended"}]},
            "new": {"M": {"x": {"L": [{"N": "1"}]}}}}})
        self.assertEqual(after["sluice_attributes"], {"M": {"who": {"S": "me"}}})
        self.assertEqual(after["sluice_group"], {"S": "g"})
        self.assertEqual(self.edit((["data", "absent", "x"], 1))["error"], "invalid")
        self.assertEqual(self.go.get("A-1"), after)
        self.assertEqual(self.go.receive()["data"], after["data"])

    def test_reset_is_gos_and_loses_nothing(self):
        self.go.send("A-1", self.ODD, theirs={"BS": [b"1", b"2"]})
        claim = self.driver.claim()[0]
        self.assertEqual(self.driver.settle(claim, "dead_letter", error="no", handler="h"), "applied")
        before = self.go.get("A-1")
        self.assertEqual(self.driver.call("reset", id="A-1"), {"ok": True})
        after = self.go.get("A-1")
        self.check_shape(after, ("theirs",))
        self.assertEqual(after["version"], {"N": "4"}, "Go begins again at 1, by which a stale reader can be deceived")
        self.assertEqual(after["receive_count"], {"N": "0"})
        self.assertEqual(after["queue_type"], {"S": "STANDARD"})
        self.assertEqual(after["received_at"], {"S": ""})
        self.assertEqual(after["invisible_until_at"], {"S": ""})
        self.assertNotIn("sluice_failure", after)
        self.assertEqual(len({after[name]["S"] for name in ("created_at", "updated_at", "sent_at")}), 1)
        self.assertGreater(after["created_at"]["S"], before["created_at"]["S"])
        self.assertEqual(after["data"], self.ODD)
        self.assertEqual(after["theirs"], before["theirs"])
        self.assertEqual(self.go.receive()["id"], {"S": "A-1"})

    def test_visibility_is_gos(self):
        self.go.send("A-1", {"S": "x"})
        self.go.receive()
        before = self.go.get("A-1")
        self.assertEqual(self.driver.call("set_visibility", id="A-1", after_ms=-1000), {"ok": True})
        after = self.go.get("A-1")
        self.assertEqual(after["version"], {"N": "3"})
        behind = go_parse(after["updated_at"]["S"]) - go_parse(after["invisible_until_at"]["S"])
        self.assertEqual(behind, timedelta(seconds=1))
        for name in ("received_at", "sent_at", "receive_count", "created_at"):
            self.assertEqual(after[name], before[name], name)
        self.assertEqual(self.go.receive()["receive_count"], {"N": "2"})
        self.assertEqual(self.driver.call("set_visibility", id="A-1"), {"ok": True})
        self.assertEqual(self.go.receive()["receive_count"], {"N": "3"})
        self.assertEqual(self.driver.call("set_visibility", id="A-1", after_ms=60000), {"ok": True})
        self.assertIsNone(self.go.receive())

    def test_delay_and_front_are_seen_by_go(self):
        for id in ("A-1", "A-2", "A-3"):
            self.go.send(id, {"S": id})
        self.assertEqual(self.driver.call("delay", id="A-1", after_ms=60000), {"ok": True})
        self.assertEqual(self.driver.call("move_to_front", id="A-3"), {"ok": True})
        self.assertEqual([self.go.receive()["id"]["S"], self.go.receive()["id"]["S"]], ["A-3", "A-2"])
        self.assertIsNone(self.go.receive())
        self.go.ahead = timedelta(seconds=61)
        self.assertEqual(self.go.receive(timeout=-120)["id"], {"S": "A-3"}, "the leases have run out, too")

    def test_dead_letter_and_redrive_by_hand(self):
        self.go.send("A-1", {"S": "x"})
        self.assertEqual(self.driver.call("dead_letter", id="A-1", version=1, error="by hand"), {"ok": True})
        item = self.go.get("A-1")
        self.assertEqual(item["sluice_failure"]["M"]["error"], {"S": "by hand"})
        self.assertEqual(item["queue_type"], {"S": "DLQ"})
        self.assertEqual(self.driver.call("dead_letter", id="A-1", version=2), {"ok": True}, "there already")
        self.assertEqual(self.go.get("A-1"), item)
        self.assertEqual(self.driver.call("redrive", id="A-1", version=1)["error"], "conflict")
        self.go.receive("DLQ")
        self.assertEqual(self.driver.call("redrive", id="A-1", version=3)["error"], "conflict", "it is in flight")
        self.go.change_visibility("A-1", -1)
        self.assertEqual(self.driver.call("redrive", id="A-1", version=4), {"ok": True})
        item = self.go.get("A-1")
        self.assertEqual(item["receive_count"], {"N": "0"})
        self.assertEqual(item["received_at"], {"S": ""})
        self.assertNotIn("sluice_failure", item)

    def test_copy_is_exact(self):
        self.go.send("odd", self.ODD, theirs={"BS": [b"1", b"2"]}, version={"N": "7"})
        self.go.send("plain", {"M": {"n": {"N": "1.50"}}})
        self.send(id="ours", attributes={"k": "v"}, group="g")
        for id, native in (("odd", True), ("plain", False), ("ours", False)):
            self.assertEqual(self.driver.call("copy", id=id, **{"as": id + "-2"}), {"ok": True, "native": native})
            before, after = self.go.get(id), self.go.get(id + "-2")
            for item in (before, after):
                item.pop("id")
                item.pop("sluice_nonce", None)
                for name in ("created_at", "updated_at", "sent_at"):
                    item[name] = go_parse(item[name]["S"])
            self.assertEqual(after, before)
        self.assertEqual(self.driver.call("copy", id="odd", **{"as": "plain"})["error"], "exists")
        self.assertEqual(self.driver.call("copy", id="odd", **{"as": "plain", "replace": True})["ok"], True)
        self.assertEqual(self.go.get("plain")["data"], self.ODD)

    def test_go_orders_ours_by_time(self):
        for i in range(30):
            self.send(id=f"m{i:02}")
        order = [self.go.receive()["id"]["S"] for _ in range(30)]
        self.assertEqual(order, [f"m{i:02}" for i in range(30)])

    def test_item_of_600_bytes_is_one_write_unit_in_flight(self):
        self.assertEqual(self.driver.call("send", body="x" * 600)["status"], "sent")
        claim = self.driver.claim()[0]
        item = self.go.get(claim["id"])
        size = sum(len(name) + len(next(iter(value.values()))) for name, value in item.items())
        self.assertLess(size, 1024)
        answer = self.emulator.db.delete_item(TableName=self.table, Key={"id": {"S": claim["id"]}},
                                              ReturnConsumedCapacity="TOTAL")
        self.assertEqual(answer["ConsumedCapacity"]["CapacityUnits"], 2.0)


def find_emulator():
    named = os.environ.get("SLUICE_EMULATOR")
    default = os.path.join(ARGUMENTS.source_dir, "build/emulator/node_modules/@dynoxide/linux-x64/dynoxide")
    return next((path for path in (named, default) if path and os.access(path, os.X_OK)), None)


def main():
    global ARGUMENTS
    parser = argparse.ArgumentParser()
    parser.add_argument("--driver", required=True)
    parser.add_argument("--source-dir", required=True)
    ARGUMENTS, rest = parser.parse_known_args()
    program = find_emulator()
    if program is None:
        print("SKIPPED: the DynamoDB emulator is absent (./dev deps fetches it); compatibility with DynamoMQ is NOT checked")
        return 77
    emulator = Emulator(program)
    try:
        Compatibility.emulator = emulator
        return 0 if unittest.main(argv=[sys.argv[0], *rest], exit=False).result.wasSuccessful() else 1
    finally:
        emulator.process.kill()
        emulator.process.wait()


if __name__ == "__main__":
    sys.exit(main())
