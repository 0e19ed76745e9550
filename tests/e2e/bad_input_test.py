#!/usr/bin/env python3
"""Bad input: every row gets one clear error, the right exit code, and loses nothing."""

import json
import os
import resource
import shutil
import signal
import subprocess
import unittest

from support import FIXTURE_PLUGINS, PATIENCE, SANITIZED, SLUICE, Case, free_port, http, main, until

USAGE, CONFIGURATION = 64, 78


class BadConfig(Case):
    def test_no_host_file_says_where_it_looked_and_the_mend(self):
        os.remove(self.path("host.toml"))
        done = self.sluice("run")
        self.assertEqual(CONFIGURATION, done.returncode)
        self.assert_one_line(done.stderr, "host.toml", "--config")

    def test_malformed_toml_has_its_place(self):
        self.write("host.toml", "[host\nname = 3\n")
        done = self.sluice("check")
        self.assertEqual(CONFIGURATION, done.returncode)
        self.assertRegex(done.stdout + done.stderr, r"host\.toml:1:\d+: ")

    def test_unknown_keys_of_all_files_at_once(self):
        self.write_job("noop", extra="concurency = 3")
        self.write_job("noop", name="second", extra='timout = "3s"')
        done = self.sluice("check")
        self.assertEqual(CONFIGURATION, done.returncode)
        text = done.stdout + done.stderr
        self.assertRegex(text, r"orders\.toml:4:1: .*concurency.*concurrency")
        self.assertRegex(text, r"second\.toml:4:1: .*timout.*timeout")
        self.assertEqual(CONFIGURATION, self.sluice("run").returncode)

    def test_missing_handler_names_the_nearest(self):
        self.write_job("nop", plugin="noop")
        done = self.sluice("run")
        self.assertEqual(CONFIGURATION, done.returncode)
        self.assert_one_line(done.stderr, "nop", "noop", r"orders\.toml:3")

    def test_unknown_commands_and_flags_name_the_nearest(self):
        done = self.sluice("chekc")
        self.assertEqual(USAGE, done.returncode)
        self.assert_one_line(done.stderr, "chekc", "check")
        done = self.sluice("send", "--quue", "orders", "--data", "1")
        self.assertEqual(USAGE, done.returncode)
        self.assert_one_line(done.stderr, "--quue", "--queue")

    def test_a_host_without_jobs_says_so(self):
        done = self.sluice("run", "--until-empty")
        self.assertEqual(CONFIGURATION, done.returncode)
        self.assert_one_line(done.stderr, "job")

    def test_a_port_in_use_says_so(self):
        import socket
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            self.write_host(http_port=taken.getsockname()[1])
            self.write_job("noop")
            done = self.sluice("run", "--until-empty")
        self.assertEqual(CONFIGURATION, done.returncode)
        self.assertRegex(done.stderr, "in use|cannot listen")

    def test_an_unwritable_drain_report_does_not_lose_the_certificate(self):
        self.write_job("noop")
        self.send(1)
        done = self.sluice("run", "--until-empty", "--drain-report", "/nonexistent/report.json")
        self.assertIn("/nonexistent/report.json", done.stderr)
        self.assertEqual(CONFIGURATION, done.returncode)
        self.assertEqual(1, self.stats()["total"])


class BadPlugins(Case):
    def rejects(self, name, *phrases):
        self.write_job("noop")
        shutil.copy(os.path.join(FIXTURE_PLUGINS, name + ".so"), self.path("plugins", "bad.so"))
        done = self.sluice("plugins", "--output", "text", check=True)
        text = done.stdout + done.stderr
        for phrase in ("bad.so",) + phrases:
            self.assertRegex(text, phrase)
        # One bad file does not stop the others.
        self.send(1)
        run = self.start("--until-empty")
        self.assertEqual(0, run.wait(), run.log())
        self.assertIn("bad.so", run.log())

    def test_no_entry_symbol(self):
        self.rejects("no_entry", "sluice_plugin_v1")

    def test_bad_magic(self):
        self.rejects("bad_magic", "does not begin as a Sluice plugin does")

    def test_newer_abi(self):
        self.rejects("major_too_new", r"ABI")

    def test_undefined_symbol(self):
        self.rejects("missing_dependency", "undefined symbol|symbol")

    def test_not_a_shared_object(self):
        self.write_job("noop")
        self.write("plugins/text.so", "hello")
        self.write("plugins/empty.so", "")
        done = self.sluice("plugins", "--output", "text", check=True)
        self.assertIn("text.so", done.stdout + done.stderr)
        self.assertIn("empty.so", done.stdout + done.stderr)

    def test_two_plugins_that_offer_one_name(self):
        self.write_job("noop")
        shutil.copy(self.path("plugins", "noop.so"), self.path("plugins", "twin.so"))
        done = self.sluice("run", "--until-empty")
        self.assertEqual(CONFIGURATION, done.returncode)
        self.assert_one_line(done.stderr, "noop.so", "twin.so")


class BadStore(Case):
    def fails(self, *phrases):
        done = self.sluice("send", "--queue", "orders", "--data", "1")
        self.assertNotEqual(0, done.returncode)
        self.assert_one_line(done.stderr, *phrases)
        self.write_job("noop")
        run = self.sluice("run", "--until-empty")
        self.assertNotEqual(0, run.returncode)

    def test_a_file_that_is_no_database(self):
        self.write("sluice.db", "this is not a database, it is a long enough text file\n" * 100)
        self.fails(r"sluice\.db")
        with open(self.path("sluice.db"), encoding="utf-8") as file:
            self.assertIn("this is not a database", file.read())

    def test_a_corrupt_database(self):
        self.send(200)
        with open(self.path("sluice.db"), "r+b") as file:
            size = os.path.getsize(self.path("sluice.db"))
            for place in range(4096, size, 4096):
                file.seek(place)
                file.write(os.urandom(2048))
        self.fails(r"sluice\.db")

    def test_a_folder_that_cannot_be_written(self):
        self.write_host()
        text = open(self.path("host.toml"), encoding="utf-8").read().replace("sluice.db", "/proc/nowhere/sluice.db")
        self.write("host.toml", text)
        self.fails("/proc/nowhere")

    def test_a_file_that_is_moved_away_or_replaced_under_a_host_loses_nothing_to_who_comes_next(self):
        self.write_job("counts", options=f'path = "{self.path("worked")}"', queue="others")
        run = self.start()
        until("it is at work", lambda: run.started())
        ids = self.send(500)
        store, away = self.path("sluice.db"), self.path("away.db")
        os.rename(store, away)
        for words in (("stats",), ("ls", "--queue", "orders"), ("send", "--queue", "orders", "--data", "1")):
            done = self.sluice(*words)
            self.assertNotEqual(0, done.returncode, words)
            self.assertRegex(done.stderr, "moved away.*put it back")
            self.assertFalse(os.path.exists(store), "nothing takes its place")
        shutil.copy(away, self.path("backup.db"))
        os.rename(self.path("backup.db"), store)
        done = self.sluice("send", "--queue", "orders", "-", data='"x"\n' * 200)
        self.assertNotEqual(0, done.returncode)
        self.assertEqual("", done.stdout, "no id is given out")
        os.rename(away, store)
        self.assertEqual(len(ids), self.stats()["ready"])
        self.assertEqual(0, run.stop(), run.log())
        self.assertEqual(len(ids), self.stats()["ready"])

    @unittest.skipIf(SANITIZED, "SKIPPED: faults are the sanitizer's")
    def test_what_is_cut_off_of_the_files_beside_a_host_ends_nobody(self):
        self.write_job("counts", options=f'path = "{self.path("worked")}"')
        run = self.start()
        until("it is at work", lambda: run.started())
        ids = self.send(50)
        folder = self.path("var", "ledgers")
        files = [os.path.join(folder, name) for name in os.listdir(folder)] + [self.path("sluice.db-door")]
        self.assertEqual(2, len(files), files)
        for file in files:
            os.truncate(file, 0)
        for _ in range(5):
            ids += self.send(50)
        until("all are done", lambda: set(ids) <= set(self.lines("worked")))
        until("the lost ledger is told of", lambda: "the crash ledger is lost" in run.log())
        self.assertEqual(0, run.stop(), run.log())
        self.assertEqual(sorted(ids), sorted(self.lines("worked")))

    def test_a_message_id_sent_twice(self):
        self.sluice("send", "--queue", "orders", "--id", "A-1", "--data", "1", check=True)
        done = self.sluice("send", "--queue", "orders", "--id", "A-1", "--data", "2")
        self.assertEqual(1, done.returncode)
        self.assert_one_line(done.stderr, "A-1", "already")
        shown = json.loads(self.sluice("get", "--queue", "orders", "--id", "A-1", check=True).stdout)
        self.assertEqual(1, shown["data"])

    def test_a_full_disk_loses_nothing_that_was_accepted(self):
        self.write_job("counts", options=f'path = "{self.path("worked")}"')
        limit = 600 * 1024

        def small_files():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        lines = (json.dumps("x" * 2000) + "\n") * 2000
        done = subprocess.run([SLUICE, "send", "--queue", "orders", "-"], input=lines, capture_output=True, text=True,
                              cwd=self.folder, env=self.environment, timeout=PATIENCE, preexec_fn=small_files, check=False)
        self.assertEqual(1, done.returncode, done.stderr)
        first, rest = done.stderr.strip().split("\n")
        self.assert_one_line(first, "disk|full|room|write")
        self.assert_one_line(rest, "--resume")
        accepted = done.stdout.split()
        run = self.start("--until-empty")
        self.assertEqual(0, run.wait(), run.log())
        self.assertLessEqual(set(accepted), set(self.lines("worked")))

    def test_a_disk_that_is_full_at_the_start_is_waited_for(self):
        self.write_job("counts", options=f'path = "{self.path("worked")}"')
        self.send(1)
        # What is limited are regular files, so that the log goes to a pipe.
        process = subprocess.Popen(
            [SLUICE, "run", "--until-empty"], cwd=self.folder, env=self.environment, stderr=subprocess.PIPE, text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, resource.RLIM_INFINITY)))
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stderr.close)
        said = ""
        for line in process.stderr:
            said += line
            if "disk is full" in line:
                break
        self.assertIn("disk is full", said)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        said += process.communicate(timeout=PATIENCE)[1]
        self.assertEqual(0, process.returncode, said)
        self.assertEqual(1, len(self.lines("worked")))


class BadTable(Case):
    store = "dynamodb"

    def client(self):
        import boto3
        return boto3.client("dynamodb", endpoint_url=self.emulator.endpoint, region_name="eu-west-1",
                            aws_access_key_id="test", aws_secret_access_key="test")

    def test_a_missing_table_names_the_command_that_makes_it(self):
        self.emulator.drop_table("orders")
        done = self.sluice("send", "--queue", "orders", "--data", "1")
        self.assertEqual(1, done.returncode)
        self.assert_one_line(done.stderr, "orders", "sluice table create")

    def test_a_queue_that_disappears_while_running_and_comes_back(self):
        self.write_job("counts", options=f'path = "{self.path("worked")}"')
        run = self.start().started()
        first = self.send(2)
        until("worked", lambda: sorted(self.lines("worked")) == sorted(first))
        self.emulator.drop_table("orders")
        until("the log says so", lambda: "sluice table create" in run.log())
        self.sluice("table", "create", "--queue", "orders", check=True)
        second = self.send(2)
        until("worked again", lambda: sorted(self.lines("worked")) == sorted(first + second))
        self.assertEqual(0, run.stop(), run.log())

    def test_absent_credentials(self):
        environment = {k: v for k, v in self.environment.items() if not k.startswith("AWS_") or k == "AWS_REGION"}
        environment["AWS_EC2_METADATA_DISABLED"] = "true"
        done = self.sluice("send", "--queue", "orders", "--data", "1", environment=environment)
        self.assertEqual(1, done.returncode)
        self.assert_one_line(done.stderr, "credentials")

    def test_a_body_of_400_kb_is_refused_before_it_is_sent(self):
        self.write("large", "x" * 400 * 1024)
        done = self.sluice("send", "--queue", "orders", "--file", "large")
        self.assertEqual(1, done.returncode)
        self.assert_one_line(done.stderr, "409600", "DynamoDB")

    def test_odd_items_in_the_table_stop_nothing(self):
        self.write_job("counts", options=f'path = "{self.path("worked")}"')
        base = {"queue_type": {"S": "STANDARD"}, "sent_at": {"S": "2023-12-01T00:00:00Z"}, "data": {"S": "x"}}
        odd = {
            "no-version": {},
            "garbage-times": {"version": {"N": "1"}, "created_at": {"S": "yesterday"}, "invisible_until_at": {"S": "soon"}},
            "no-data": {"version": {"N": "1"}, "data": None},
            "sets": {"version": {"N": "1"}, "data": {"NS": ["1", "2"]}},
            "binary-set": {"version": {"N": "1"}, "data": {"BS": [b"\x00\xff"]}},
            "version-as-text": {"version": {"S": "one"}},
            "garbage-sent-at": {"version": {"N": "1"}, "sent_at": {"S": "2023"}},
            "null-times": {"version": {"N": "1"}, "invisible_until_at": {"NULL": True}, "received_at": {"NULL": True}},
        }
        client = self.client()
        self.addCleanup(client.close)
        for name, attributes in odd.items():
            item = {**base, **attributes, "id": {"S": name}}
            client.put_item(TableName="orders", Item={k: v for k, v in item.items() if v is not None})
        good = self.send(3)
        run = self.start("--until-empty")
        self.assertEqual(0, run.wait(), run.log())
        self.assertLessEqual(set(good), set(self.lines("worked")))
        self.assertEqual(set(good) | set(odd), set(self.lines("worked")), run.log())


class BadHandlers(Case):
    def test_throws_int_and_nonsense_count_as_attempts(self):
        for plugin in ("handle_throws_std", "handle_throws_int", "unknown_status"):
            with self.subTest(plugin):
                self.sluice("purge", "--queue", "orders", "--dlq", "--yes", check=True)
                # The fixture's handler name is its file's.
                self.write_job(plugin, extra='[job.retry]\nmax_attempts = 2\nbase = "1ms"')
                self.send(1)
                run = self.start()
                until("it is dead", lambda: self.stats()["dlq"] == 1)
                self.assertEqual(0, run.stop(), run.log())
                self.assert_certificate(run, claimed=2, retried=1, rejected=1)

    def test_a_handler_that_hangs_is_named_and_healthz_turns_503_when_too_many_do(self):
        port = free_port()
        self.write_host(http_port=port, drain="1s")
        self.write_job("sleeper", options='duration = "1h"\nignore_stop = true',
                       extra='concurrency = 4\ntimeout = "1s"\n[job.retry]\nbase = "1h"\nmax = "1h"')
        (message,) = self.send(1)
        run = self.start()
        until("healthz names it", lambda: "does not return from message " + message in http(port, "/healthz")[1])
        self.assertEqual(200, http(port, "/healthz")[0])
        self.send(3)
        until("healthz is 503", lambda: http(port, "/healthz")[0] == 503)
        self.assertIn("no more workers take their place", http(port, "/healthz")[1])
        host, = json.loads(self.sluice("hosts", "--output", "json", check=True).stdout)
        self.assertIn("no more workers take their place", host["unhealthy"])
        for words in (("hosts",), ("top", "--once")):
            shown = self.sluice(*words, "--output", "text", check=True)
            self.assertIn("unhealthy", shown.stdout)
            self.assertIn("no more workers take their place", shown.stdout + shown.stderr)
        self.assertIn(message, run.log())
        self.assertIn("sleeper", run.log())
        self.assertEqual(75, run.stop(), run.log())

    def test_a_create_that_throws_is_a_configuration_error(self):
        self.write_job("create_throws")
        done = self.sluice("run", "--until-empty")
        self.assertEqual(CONFIGURATION, done.returncode)
        self.assert_one_line(done.stderr, "create_throws")


if __name__ == "__main__":
    main()
