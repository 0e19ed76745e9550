#!/usr/bin/env python3
"""A host on a DynamoDB table is woken by whoever sends, from another process, by a datagram."""

import http.client
import http.server
import json
import re
import socket
import socketserver
import threading
import time
import unittest

from support import Case, free_port, http as get, main, until

SECRET = "0123456789abcdef0123456789abcdef"


class Watched(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """Stands before the emulator and notes when a host looks for messages."""

    daemon_threads = True

    def __init__(self, port):
        self.beneath = port
        self.looks = []
        super().__init__(("127.0.0.1", 0), Forward)
        self.thread = threading.Thread(target=self.serve_forever, daemon=True)
        self.thread.start()

    def stop(self):
        self.shutdown()
        self.server_close()
        self.thread.join()


class Forward(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):  # noqa: N802: the base class names it.
        if self.headers["X-Amz-Target"].endswith(".Query"):
            self.server.looks.append(time.monotonic())
        body = self.rfile.read(int(self.headers["Content-Length"]))
        beneath = http.client.HTTPConnection("127.0.0.1", self.server.beneath)
        try:
            beneath.request("POST", "/", body, {name: value for name, value in self.headers.items() if name != "Host"})
            answer = beneath.getresponse()
            text = answer.read()
        except OSError:  # The test is over.
            self.close_connection = True
            return
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "content-length", "connection", "date", "server"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
        beneath.close()

    def log_message(self, *_):
        pass


class WakeDynamo(Case):
    store = "dynamodb"

    def setUp(self):
        super().setUp()
        self.http_port = free_port()

    def write_hosts(self, listener="", sender="", endpoint=None):
        """Two host files on one table: the host's own, and the one of those who send."""
        self.write_host(f"[wake]\n{sender}\n")
        with open(self.path("host.toml"), encoding="utf-8") as file:
            self.write("sender.toml", file.read())
        self.write_host(f"[wake]\n{listener}\n", http_port=self.http_port)
        if endpoint:
            with open(self.path("host.toml"), encoding="utf-8") as file:
                text = file.read()
            self.write("host.toml", text.replace(self.emulator.endpoint, endpoint))
        # Of a job that finds nothing, the pauses between two looks double up to an hour.
        self.write_job("noop", extra='poll_interval = "1h"')

    def item(self):
        found = self.emulator.call("GetItem", TableName="orders", Key={"id": {"S": "sluice:fleet/bells"}},
                                   ConsistentRead=True)
        return found.get("Item", {})

    def announced(self):
        return [value["S"] for name, value in self.item().items() if name.startswith("sluice_bell:")]

    def start_announced(self):
        run = self.start()
        until("the host announces itself", self.announced)
        return run

    def send_one(self, body):
        self.sluice("send", "--queue", "orders", "--config", "sender.toml", "--text", body, check=True)

    def empty(self):
        """Looked at from beside the host."""
        done = self.sluice("stats", "--queue", "orders", "--config", "sender.toml", check=True)
        return json.loads(done.stdout)["total"] == 0

    def counted(self, result):
        found = re.search(r'sluice_wake_datagrams_total\{result="%s"\} (\d+)' % result, get(self.http_port, "/metrics")[1])
        return int(found.group(1)) if found else 0

    def bell(self):
        host, port = self.announced()[0].split(" ")[1].rsplit(":", 1)
        return host, int(port)

    def quiet_since(self, watched, pause):
        """Waits until the host has paused so long between two looks; then the next pause is about twice as long."""
        until("looks have become rare", lambda: len(watched.looks) > 2 and watched.looks[-1] - watched.looks[-2] > pause,
              patience=20 * pause + 120)
        return watched.looks[-1], watched.looks[-1] - watched.looks[-2]

    def test_a_send_from_another_process_starts_the_handler_long_before_the_next_look(self):
        watched = Watched(self.emulator.port)
        self.addCleanup(watched.stop)
        self.write_hosts(f'listen = "127.0.0.1:0"\nsecret = "{SECRET}"', f'secret = "{SECRET}"',
                         f"http://127.0.0.1:{watched.server_port}")
        run = self.start_announced()
        # A machine so busy that the send itself takes a whole pause proves nothing; then the pauses are longer.
        for attempt in range(5):
            last, pause = self.quiet_since(watched, 3 * 2 ** attempt)
            self.send_one(f"message-{attempt}")
            until("it is handled", self.empty, patience=4 * pause + 60)
            if time.monotonic() < last + 1.8 * pause:
                break
        else:
            self.fail("the host has never looked before its time")
        self.assertGreaterEqual(self.counted("rung"), 1)
        self.assertEqual(0, run.stop(), run.log())
        self.assertEqual([], self.announced(), "it is taken back")

    def test_the_item_is_no_message_for_anybody(self):
        self.write_hosts('listen = "127.0.0.1:0"')
        self.start_announced()
        item = self.item()
        self.assertNotIn("queue_type", item)
        self.assertTrue(all(name == "id" or name.startswith("sluice_") for name in item), item)
        self.assertRegex(self.announced()[0], r"^1 127\.0\.0\.1:\d+ \d+ 60 orders$")
        # As DynamoMQ's Go programs read: by its index.
        found = self.emulator.call("Query", TableName="orders", IndexName="dynamo-mq-index-queue_type-sent_at",
                                   KeyConditionExpression="queue_type = :q",
                                   ExpressionAttributeValues={":q": {"S": "STANDARD"}})
        self.assertEqual(0, found["Count"])
        self.assertEqual(0, self.stats()["total"])
        checked = self.sluice("table", "check", "--queue", "orders", "--all-items")
        self.assertNotIn("sluice:fleet/bells", checked.stdout + checked.stderr)

    def test_boto3_sees_no_message_either(self):
        try:
            import boto3  # Debian's; absent where only the product is tested.
        except ImportError:
            self.skipTest("SKIPPED: no boto3")
        self.write_hosts('listen = "127.0.0.1:0"')
        self.start_announced()
        table = boto3.resource("dynamodb", endpoint_url=self.emulator.endpoint, region_name="eu-west-1",
                               aws_access_key_id="test", aws_secret_access_key="test").Table("orders")
        item = table.get_item(Key={"id": "sluice:fleet/bells"}, ConsistentRead=True)["Item"]
        self.assertNotIn("queue_type", item)
        self.assertNotIn("sent_at", item)

    def test_what_is_forged_wakes_nobody_and_is_told_to_nobody(self):
        self.write_hosts(f'listen = "127.0.0.1:0"\nsecret = "{SECRET}"', "ring = false")
        run = self.start_announced()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as prankster:
            for bytes_sent in (b"hello", b"", b"x" * 4000,
                               b"SLWK\x01\x00\x00\x06" + b"\x00" * 16 + b"orders",
                               b"SLWK\x01\x01\x00\x06" + b"\x00" * 16 + b"orders" + b"\x00" * 32):
                until("it is counted", lambda b=bytes_sent: self.sent_and_counted(prankster, b))
            prankster.setblocking(False)
            with self.assertRaises(BlockingIOError, msg="nothing is ever sent back"):
                prankster.recv(1)
        self.assertEqual(0, self.counted("rung"))
        self.assertGreaterEqual(self.counted("malformed"), 3)
        self.assertGreaterEqual(self.counted("unsigned"), 1)
        self.assertGreaterEqual(self.counted("forged"), 1)
        self.assertEqual(0, run.stop(), run.log())
        self.assertNotIn("datagram", run.log())

    def sent_and_counted(self, sender, bytes_sent):
        before = sum(self.counted(name) for name in ("malformed", "unsigned", "forged"))
        sender.sendto(bytes_sent, self.bell())
        return until("it is seen", lambda: sum(self.counted(name) for name in ("malformed", "unsigned", "forged")) > before)

    def test_a_port_that_is_taken_is_an_error_of_the_start(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
            taken.bind(("127.0.0.1", 0))
            self.write_hosts(f'listen = "127.0.0.1:{taken.getsockname()[1]}"')
            done = self.sluice("run")
        self.assertEqual(78, done.returncode, done.stderr)
        self.assertIn("the port is in use; choose another in [wake] listen", done.stderr)


if __name__ == "__main__":
    main()
