#!/usr/bin/env python3
"""Each role on a leased table by its own way to the model of DynamoDB, which refuses what the role's policy does not
name: what `sluice table policy` prints is enough, and each action in it is asked for."""

import http.client
import http.server
import json
import os
import threading

from support import Case, Model, main, until

TABLE = "sluice-queues"
ROLES = ("setup", "producer", "host", "reader", "operator")


def actions_of(operation, request):
    """What IAM asks for."""
    if operation == "BatchExecuteStatement":
        words = [statement["Statement"].split()[0] for statement in request["Statements"]]
    elif operation == "ExecuteStatement":
        words = [request["Statement"].split()[0]]
    elif operation == "TransactWriteItems":
        return {kind + "Item" for item in request["TransactItems"] for kind in item}
    else:
        return {operation}
    return {"PartiQL" + word.capitalize() for word in words}


class Gate:
    """A role's way to the table: notes what is asked for, refuses what its policy does not name, and keeps the answer
    to the first of `lose` to itself, as a network does."""

    def __init__(self, endpoint, allowed):
        self.allowed = allowed
        self.asked = set()
        self.refused = set()
        self.lose = set()
        gate = self
        place = endpoint.split("//")[1]

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                operation = self.headers["X-Amz-Target"].split(".")[1]
                wanted = actions_of(operation, json.loads(body))
                gate.asked |= wanted
                missing = wanted - gate.allowed
                if missing:
                    gate.refused |= missing
                    return self.refuse(missing)
                connection = http.client.HTTPConnection(place)
                connection.request("POST", "/", body, {name: value for name, value in self.headers.items()
                                                       if name.lower() != "host"} | {"Host": place})
                answer = connection.getresponse()
                text = answer.read()
                connection.close()
                if operation in gate.lose:
                    gate.lose.discard(operation)
                    self.close_connection = True
                    return None
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() in ("content-type", "x-amz-crc32", "x-amzn-requestid"):
                        self.send_header(name, value)
                return self.end(text)

            def refuse(self, missing):
                self.send_response(400)
                self.send_header("Content-Type", "application/x-amz-json-1.0")
                text = {"__type": "com.amazon.coral.service#AccessDeniedException",
                        "Message": "User: arn:aws:sts::000000000000:assumed-role/role/session is not authorized to "
                                   f"perform: dynamodb:{sorted(missing)[0]} on resource: table"}
                return self.end(json.dumps(text).encode())

            def end(self, text):
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # a host that is killed leaves its connections
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.endpoint = f"http://127.0.0.1:{self.server.server_port}"

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class LeasedRights(Case):
    def setUp(self):
        super().setUp()
        self.model = Model()
        self.addCleanup(self.model.stop)
        self.gates = {}
        for role in ROLES:
            self.gates[role] = Gate(self.model.endpoint, self.policy(role))
            self.addCleanup(self.gates[role].stop)
            self.write(f"{role}.toml", self.host_file(self.gates[role].endpoint))
        self.as_role("setup", "table", "create", "--queue", "orders")

    def host_file(self, endpoint):
        return (f'[host]\nname = "e2e"\ndrain_timeout = "10s"\n[log]\nlevel = "debug"\n[store]\nkind = "dynamodb"\n'
                f'[dynamodb]\nendpoint = "{endpoint}"\n[wake]\nlisten = "127.0.0.1:0"\n'
                '[queues.orders]\nlayout = "leased"\nshards = 4\n'
                '[queues.receipts]\nlayout = "leased"\nshards = 4\nfence = "strict"\n')

    def policy(self, role):
        """What the command prints, without `dynamodb:`."""
        done = self.sluice("table", "policy", "--table", TABLE, "--layout", "leased", "--role", role, check=True)
        actions = {action for statement in json.loads(done.stdout)["Statement"] for action in statement["Action"]}
        return {action.split(":")[1] for action in actions}

    def as_role(self, role, *words, data=None, status=0):
        done = self.sluice(*words, "--config", f"{role}.toml", data=data)
        self.assertEqual(status, done.returncode, f"{role} {words}: {done.stdout[-2000:]} {done.stderr}")
        self.assertEqual(set(), self.gates[role].refused, f"{role} {words}")
        return done.stdout.strip()

    def send(self, *words, queue="orders", data=None):
        return self.as_role("producer", "send", "--queue", queue, *words, data=data)

    def assert_exactly(self, role):
        gate = self.gates[role]
        self.assertEqual(set(), gate.refused, role)
        self.assertEqual(sorted(gate.allowed), sorted(gate.asked), f"{role}: what it may, and what it has asked for")

    def test_setup_makes_the_table(self):
        self.as_role("setup", "table", "create", "--queue", "orders")
        self.assert_exactly("setup")

    def test_who_may_not_look_is_not_told_that_a_queue_is_unknown(self):
        self.as_role("producer", "send", "--queue", "made", "--create", "--text", "x")
        gate = Gate(self.model.endpoint, set())
        self.addCleanup(gate.stop)
        self.write("nobody.toml", self.host_file(gate.endpoint))
        for words in (("ls", "made"), ("send", "made", "--text", "x"), ("queues",), ("stats",)):
            done = self.sluice(*words, "--config", "nobody.toml")
            self.assertEqual(1, done.returncode, words)
            self.assertIn("not authorized", done.stderr, words)
            self.assertNotIn("knows a queue", done.stderr, words)
        # Whose queues lie in DynamoMQ's tables has no right to this one, and needs none.
        self.write("go.toml", self.host_file(gate.endpoint).replace('layout = "leased"\nshards = 4\n', 'layout = "dynamomq"\n')
                   .replace('fence = "strict"\n', ""))
        done = self.sluice("queues", "--config", "go.toml")
        self.assertEqual((0, ""), (done.returncode, done.stderr))

    def produce(self):
        self.gates["producer"].lose.add("BatchExecuteStatement")
        self.send("-", data='"x"\n' * 60)
        made = self.send("--text", "plain")
        self.send("--id", made[:-3] + ("0" if made[-3] != "0" else "1") + made[-2:], "--text", "looks made")
        self.send("--id", "mine", "--text", "own", "--group", "g", "--priority", "high")
        self.send("--dedup-id", "order 7", "--unique-key", "order 7", "--text", "once")
        self.send("--dedup-id", "order 7", "--text", "again")
        self.send("--delay", "1h", "--text", "later")

    def test_a_producer_sends(self):
        self.produce()
        self.assert_exactly("producer")

    def test_a_reader_looks(self):
        self.produce()
        for words in (("ls", "--queue", "orders"), ("stats", "--queue", "orders", "--exact"), ("stats", "--queue", "orders"),
                      ("get", "--queue", "orders", "--id", "mine"), ("peek", "--queue", "orders"),
                      ("export", "--queue", "orders", "--both"), ("hosts",), ("jobs",), ("audit",),
                      ("keys", "list", "--queue", "orders"), ("table", "check", "--queue", "orders"),
                      ("table", "describe", "--queue", "orders"), ("dlq", "--queue", "orders")):
            self.as_role("reader", *words)
        self.assert_exactly("reader")

    def test_an_operator_does_what_the_commands_do(self):
        self.produce()
        ids = [row["id"] for row in json.loads(self.as_role("operator", "ls", "--queue", "orders", "--all", "--json"))["statuses"]]
        def one(*words):
            self.as_role("operator", *words, "--queue", "orders")
        self.gates["operator"].lose.add("BatchExecuteStatement")
        one("delay", "--id", ids[0], "--for", "1h")
        one("move-to-front", "--id", ids[1])
        one("invalid", "--id", ids[2])
        one("redrive", "--id", ids[2])
        one("edit", "--id", "mine", "--set", "data=other")
        one("delete", "--id", ids[4])
        taken = json.loads(self.as_role("operator", "receive", "--queue", "orders"))["id"]
        one("fail", "--id", taken)
        one("send", "--text", "plain")
        one("pause")
        one("resume")
        one("table", "check")
        one("table", "describe")
        one("table", "shards", "--to", "6")
        one("stats", "--exact")
        self.as_role("operator", "move", "--from", "orders", "--to", "receipts", "--yes")
        self.as_role("operator", "move", "--from", "receipts", "--to", "orders", "--yes")
        lines = self.as_role("operator", "export", "--queue", "orders", "--both")
        self.as_role("operator", "purge", "--queue", "orders", "--yes")
        self.write("orders.jsonl", lines + "\n")
        self.as_role("operator", "import", "--queue", "orders", "--file", "orders.jsonl")
        self.as_role("operator", "keys", "list", "--queue", "orders")
        self.assert_exactly("operator")

    def left(self, queue, half):
        return json.loads(self.as_role("reader", "stats", "--queue", queue, "--exact"))[half]

    def run_until(self, what, fact, *, kill=False):
        run = self.start("--config", "host.toml")
        until(what, fact)
        if kill:
            run.process.kill()
            run.process.wait()
        else:
            self.assertEqual(0, run.stop(), run.log())
        self.assertNotIn("not authorized", run.log())
        self.assertEqual(set(), self.gates["host"].refused, run.log())

    def test_a_host_works_and_asks_for_no_more(self):
        self.produce()
        gate = self.gates["host"]
        self.write_job("forwards", extra='[schedule.tick]\nevery = "1s"\nbody = "tick"')
        gate.lose.add("BatchExecuteStatement")
        self.run_until("they are forwarded", lambda: self.left("receipts", "ready") >= 63)
        os.unlink(self.path("jobs.d", "orders.toml"))
        self.write_job("fails", name="receipts", queue="receipts", options='outcome = "retry"\nreason = "because"')
        self.run_until("they are retried", lambda: self.left("receipts", "delayed") > 20, kill=True)
        self.write_job("fails", name="receipts", queue="receipts", options='outcome = "reject"\nreason = "because"')
        self.as_role("operator", "fail", "--queue", "receipts", "--all", "--yes")
        self.run_until("they are dead letters", lambda: self.left("receipts", "dlq") >= 63)
        self.send("-", queue="receipts", data='"x"\n' * 60)
        gate.lose.add("BatchExecuteStatement")
        self.write_job("noop", name="receipts", queue="receipts")
        self.run_until("they are done", lambda: self.left("receipts", "ready") == 0)
        self.assert_exactly("host")


if __name__ == "__main__":
    main()
