#!/usr/bin/env python3
"""docs/write/publishers.md as its readers follow it: the job files are good, and what its commands publish arrives."""

import base64
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import doc_page
import support
from support import Case

PAGE = "docs/write/publishers.md"
SERVER = os.environ.get("SLUICE_NATS_SERVER") or shutil.which("nats-server", path=os.environ["PATH"] + ":/usr/sbin:/usr/bin")


class Nats:
    """A nats-server with JetStream on files, and as much of its protocol as it takes to ask for a stream. Ended by pid."""

    def __init__(self, folder):
        self.port = support.free_port()
        self.process = subprocess.Popen([SERVER, "-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd", folder],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.socket = self.file = None
        support.until("nats-server listens", self.connect)
        self.file.write(b'CONNECT {"verbose":false,"pedantic":false}\r\nSUB answers.* 1\r\n')

    def connect(self):
        try:
            self.socket = socket.create_connection(("127.0.0.1", self.port), support.PATIENCE)
            self.file = self.socket.makefile("rwb", buffering=0)
        except OSError:
            return False
        return True

    def ask(self, subject, **request):
        body = json.dumps(request).encode()
        self.file.write(f"PUB $JS.API.{subject} answers.1 {len(body)}\r\n".encode() + body + b"\r\n")
        while True:
            line = self.file.readline()
            if line.startswith(b"PING"):
                self.file.write(b"PONG\r\n")
            elif line.startswith(b"MSG"):
                size = int(line.split()[-1])
                answer = b""
                while len(answer) < size + 2:
                    answer += self.file.read(size + 2 - len(answer))
                return json.loads(answer)

    def messages(self, stream):
        """(subject, headers, body) of each."""
        count = self.ask(f"STREAM.INFO.{stream}")["state"]["messages"]
        found = []
        for sequence in range(1, count + 1):
            message = self.ask(f"STREAM.MSG.GET.{stream}", seq=sequence)["message"]
            found.append((message["subject"], base64.b64decode(message["hdrs"]).decode(), json.loads(base64.b64decode(message["data"]))))
        return found

    def stop(self):
        self.file.close()
        self.socket.close()
        self.process.kill()
        self.process.wait()


class PublishersPage(Case):
    def setUp(self):
        super().setUp()
        if not SERVER:
            self.skipTest("SKIPPED: no nats-server; ./dev deps installs it")
        self.server = Nats(self.path("streams"))
        self.addCleanup(self.server.stop)
        created = self.server.ask("STREAM.CREATE.ORDERS", name="ORDERS", subjects=["orders.>"], storage="file")
        self.assertNotIn("error", created)
        self.write("host.toml", f'[host]\nplugin_dirs = ["{support.SHIPPED_PLUGINS}"]\n[queues.refunds]\n[queues.mail]\n')
        os.symlink(os.path.abspath(support.SLUICE), self.path("sluice"))
        self.environment["PATH"] = f"{self.folder}:{self.environment['PATH']}"

    def test_what_its_commands_publish_arrives(self):
        commands = []
        for block in doc_page.blocks(PAGE):
            if block.language == "toml":
                name = re.match(r"# (jobs\.d/[\w-]+\.toml)\n", block.content)
                self.assertTrue(name, f"line {block.line}: the block names its file")
                self.write(name.group(1), block.content.replace(":4222", f":{self.server.port}"))
                done = self.sluice("check")
                self.assertEqual(0, done.returncode, f"line {block.line}: {done.stdout}{done.stderr}")
            else:
                commands.append(block.content)
        self.assertEqual(1, len(commands))
        done = doc_page.run(commands[0], self.folder, self.environment)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        stored = self.server.messages("ORDERS")
        self.assertEqual([("orders.1:1", {"order": 1}), ("orders.1:1", {"order": 1}), ("orders.invoices.7", {"invoice": 7})],
                         sorted((subject, body) for subject, _, body in stored))
        events = [re.search(r"^Event: ?(\S+)", headers, re.M).group(1) for subject, headers, _ in stored if subject == "orders.1:1"]
        self.assertEqual(["order.created", "order.paid"], events)
        self.assertIn("Producer: shop", stored[0][1].replace("Producer:shop", "Producer: shop"))
        for queue, order in (("refunds", 2), ("mail", 3)):
            lines = self.sluice("export", "--queue", queue, check=True).stdout.splitlines()
            self.assertEqual(1, len(lines), queue)
            self.assertIn(f'{{"order":{order}}}', lines[0].replace(" ", "").replace("\\", ""))


if __name__ == "__main__":
    unittest.main()
