#!/usr/bin/env python3
"""Roles that may not do all that a host does, against the model of DynamoDB, which refuses by action as IAM does."""

import json
import os
import signal
import subprocess

from support import BUILD, Case, Emulator, free_port, http, main, until

MODEL = os.path.join(BUILD, "bin", "dynamodb_model_server")
STATEMENTS = ["PartiQLInsert", "PartiQLUpdate", "PartiQLDelete"]


class Model(Emulator):
    """The model on a free port, where nobody may do what `denied` names."""

    def __init__(self, denied):
        self.port = free_port()
        words = [word for action in denied for word in ("--deny", "dynamodb:" + action)]
        self.process = subprocess.Popen([MODEL, "--port", str(self.port), *words], stdout=subprocess.DEVNULL)
        until("the model listens", self.listens)


class Rights(Case):
    store = "dynamodb"

    def use(self, denied, http_port=None):
        """Goes over to a model with these refusals, and an empty table."""
        self.emulator.stop()
        self.emulator = Model(denied)
        self.write_host(http_port=http_port)

    def dynamomq(self, *words):
        program = self.path("dynamomq")
        if not os.path.exists(program):
            os.symlink(os.path.abspath(os.path.join(BUILD, "bin", "sluice")), program)
        return subprocess.run([program, *words, "--table-name", "orders", "--endpoint-url", self.emulator.endpoint],
                              capture_output=True, text=True, cwd=self.folder, env=self.environment, timeout=60)

    def send_some(self, count):
        return self.sluice("send", "--queue", "orders", "-", data='"x"\n' * count)

    def test_dynamomqs_own_policy_is_enough(self):
        self.use(STATEMENTS)
        sent = self.send_some(60)
        self.assertEqual(0, sent.returncode, sent.stderr)
        self.assertEqual(1, sent.stderr.count("PartiQL statements"), sent.stderr)
        self.assertIn("dynamodb:PartiQLInsert", sent.stderr)
        self.write_job("noop")
        run = self.start("--until-empty")
        self.assertEqual(0, run.wait(), run.log())
        self.assert_certificate(run, claimed=60, done=60)
        self.assertEqual(1, run.log().count("PartiQL statements"), run.log())
        self.assertEqual(0, self.dynamomq("enqueue-test").returncode)
        purged = self.dynamomq("purge")
        self.assertEqual(0, purged.returncode, purged.stderr)
        self.assertEqual(4, len(json.loads(purged.stdout)["successes"]))

    def test_a_host_that_may_not_claim_is_neither_ready_nor_clean(self):
        port = free_port()
        self.use(["PartiQLUpdate", "UpdateItem"], http_port=port)
        self.assertEqual(0, self.send_some(5).returncode)
        self.write_job("noop")
        run = self.start().started()
        until("it is not ready", lambda: http(port, "/readyz")[0] == 503 and "dynamodb:UpdateItem" in http(port, "/readyz")[1])
        self.assertEqual(200, http(port, "/healthz")[0])
        self.assertEqual(75, run.stop(signal.SIGTERM), run.log())
        self.assertFalse(run.report()["clean"])
        self.assertIn("dynamodb:UpdateItem", run.log())

    def test_a_host_that_may_not_settle_is_neither_ready_nor_clean(self):
        port = free_port()
        self.use(["PartiQLDelete", "DeleteItem"], http_port=port)
        self.assertEqual(0, self.send_some(5).returncode)
        self.write_job("noop")
        run = self.start().started()
        until("it is not ready", lambda: http(port, "/readyz")[0] == 503 and "dynamodb:DeleteItem" in http(port, "/readyz")[1])
        self.assertEqual(75, run.stop(signal.SIGTERM), run.log())

    def test_until_empty_ends_when_it_may_not_work(self):
        self.use(["PartiQLUpdate", "UpdateItem"])
        self.assertEqual(0, self.send_some(5).returncode)
        self.write_job("noop")
        self.assertEqual(75, self.start("--until-empty").wait())

    def test_commands_name_what_is_missing_and_fail(self):
        self.use([*STATEMENTS, "DeleteItem"])
        self.assertEqual(0, self.send_some(3).returncode)
        for words in (("purge", "--queue", "orders", "--yes"),
                      ("delete", "--queue", "orders", "--where", "receive_count = 0", "--yes")):
            done = self.sluice(*words)
            self.assertEqual(1, done.returncode, words)
            self.assertIn("dynamodb:DeleteItem", done.stdout + done.stderr, words)
        for words in (("enqueue-test",), ("purge",), ("delete", "--id", "x")):
            done = self.dynamomq(*words)
            self.assertEqual(1, done.returncode, words)
            self.assertIn("ERROR: Failed DynamoDB API: ", done.stdout, words)
            self.assertIn("dynamodb:DeleteItem", done.stderr, words)

    def test_an_effect_that_the_role_may_not_write_ends_its_own_message_alone(self):
        self.use(["UpdateItem"])
        self.sluice("table", "create", "--table", "accounts", "--no-ttl", "--endpoint", self.emulator.endpoint, check=True)
        self.write_job("effect_of", extra="[job.retry]\nmax_attempts = 1\n")
        effect = ("--attr", "table=accounts", "--attr", "set=balance = :n")
        for message, words in (("bad", effect), ("good", ())):
            self.sluice("send", "--queue", "orders", "--id", message, "--data", "1", *words, check=True)
        run = self.start("--until-empty")
        self.assertEqual(0, run.wait(), run.log())
        shown = json.loads(self.sluice("get", "bad", "--queue", "orders", "--json", check=True).stdout)
        self.assert_one_line(shown["failure"]["error"], "accounts was refused", "dynamodb:UpdateItem",
                             "let the role write table accounts")
        self.assertEqual({"total": 0, "dlq": 1}, {name: self.stats("orders")[name] for name in ("total", "dlq")})

    def test_a_role_that_may_not_send_is_told_so(self):
        self.use(["PartiQLInsert", "PutItem"])
        sent = self.send_some(3)
        self.assertEqual(1, sent.returncode)
        self.assertIn("dynamodb:PutItem", sent.stderr)


if __name__ == "__main__":
    main()
