"""Where the bank's accounts lie: rows of SQLite beside the queues, or items of the DynamoDB emulator behind a gate."""

import json
import os
import random
import socket
import sqlite3
import subprocess
import threading
import time
import urllib.request

import bank_books

PATIENCE = 60


class Sqlite:
    name = "SQLite"

    def __init__(self, folder, _options):
        self.file = os.path.join(folder, "bank.db")

    def host_file(self):
        return '[store]\nkind = "sqlite"\npath = "bank.db"\n'

    def around_the_gate(self):
        return {}

    def open(self, bank):
        bank.sluice("stats", "--queue", "transfers")  # makes the file
        with self.database() as database:
            database.execute("CREATE TABLE accounts (id TEXT PRIMARY KEY, balance INTEGER NOT NULL)")
            database.executemany("INSERT INTO accounts VALUES (?, ?)", [
                (bank_books.account(number), bank_books.OPENING) for number in range(bank.options.accounts)])

    def database(self):
        return sqlite3.connect(self.file, timeout=PATIENCE)

    def balances(self):
        with self.database() as database:
            return dict(database.execute("SELECT id, balance FROM accounts"))

    def losses(self):
        return ""

    def lost(self):
        return None

    def close(self):
        pass


class Gate:
    """Passes requests on to the emulator. Some answers it throws away, after the write, and closes the connection."""

    def __init__(self, target, part, seed):
        self.target, self.part, self.dice = target, part, random.Random(seed)
        self.lock = threading.Lock()
        self.answers = self.transactions = 0
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        try:
            with client, socket.create_connection(("127.0.0.1", self.target)) as server:
                for end in (client, server):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                coming, going = client.makefile("rb"), server.makefile("rb")
                while request := self.message(coming):
                    server.sendall(request)
                    answer = self.message(going)
                    if not answer or self.loses(request):
                        return
                    client.sendall(answer)
        except OSError:
            pass

    @staticmethod
    def message(stream):
        """The next whole HTTP message; nothing at the end."""
        head, size = b"", 0
        while not head.endswith(b"\r\n\r\n"):
            line = stream.readline()
            if not line:
                return b""
            if line.lower().startswith(b"content-length:"):
                size = int(line.split(b":")[1])
            head += line
        return head + stream.read(size)

    def loses(self, request):
        transaction = b"TransactWriteItems" in request.split(b"\r\n\r\n", 1)[0]
        with self.lock:
            lost = self.dice.random() < self.part
            self.answers += lost
            self.transactions += lost and transaction
        return lost

    def close(self):
        self.listener.close()


class DynamoDb:
    name = "DynamoDB"

    def __init__(self, folder, options):
        emulator = os.environ.get("SLUICE_EMULATOR", "")
        if not os.access(emulator, os.X_OK):
            raise SystemExit("bank: there is no DynamoDB emulator for this machine; ./dev deps installs it")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        with open(os.path.join(folder, "emulator.log"), "w", encoding="utf-8") as log:
            self.process = subprocess.Popen([emulator, "--host", "127.0.0.1", "--port", str(self.port)], stdout=log, stderr=log)
        end = time.monotonic() + PATIENCE
        while not self.listens():
            if time.monotonic() > end or self.process.poll() is not None:
                raise SystemExit("bank: the emulator does not start; see emulator.log")
            threading.Event().wait(0.02)
        self.gate = Gate(self.port, options.lose, options.seed)

    def listens(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def host_file(self):
        return ('[store]\nkind = "dynamodb"\n[dynamodb]\nregion = "eu-west-1"\n'
                'endpoint = "http://127.0.0.1:${BANK_PORT:-%d}"\n' % self.gate.port)

    def around_the_gate(self):
        """What the bank's own commands have in their environment, and hosts have not."""
        return {"BANK_PORT": str(self.port)}

    def open(self, bank):
        for queue in ("transfers", "receipts"):
            bank.sluice("table", "create", "--queue", queue)
        self.call("CreateTable", TableName="accounts", BillingMode="PAY_PER_REQUEST",
                  AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
                  KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}])
        for number in range(bank.options.accounts):
            self.call("PutItem", TableName="accounts", Item={"id": {"S": bank_books.account(number)},
                                                             "balance": {"N": str(bank_books.OPENING)}})

    def call(self, operation, **request):
        headers = {"X-Amz-Target": "DynamoDB_20120810." + operation, "Content-Type": "application/x-amz-json-1.0",
                   "Authorization": "AWS4-HMAC-SHA256 Credential=bank/20230101/eu-west-1/dynamodb/aws4_request, "
                                    "SignedHeaders=host, Signature=0", "X-Amz-Date": "20230101T000000Z"}
        sent = urllib.request.Request(f"http://127.0.0.1:{self.port}", data=json.dumps(request).encode(), headers=headers)
        with urllib.request.urlopen(sent, timeout=PATIENCE) as answer:
            return json.loads(answer.read())

    def balances(self):
        items, last = [], {}
        while True:
            page = self.call("Scan", TableName="accounts", ConsistentRead=True, **last)
            items += page["Items"]
            if "LastEvaluatedKey" not in page:
                return {item["id"]["S"]: int(item["balance"]["N"]) for item in items}
            last = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    def losses(self):
        return f", {self.gate.answers} answers lost"

    def lost(self):
        return {"answers": self.gate.answers, "transactions": self.gate.transactions}

    def close(self):
        self.gate.close()
        self.process.kill()
        self.process.wait()
