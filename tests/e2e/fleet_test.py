#!/usr/bin/env python3
"""Hosts are seen and steered by commands, through the store and at their control sockets."""

import contextlib
import json
import os
import re
import signal
import socket
import stat
import time

from support import SANITIZED, Case, main, until


class Fleet(Case):
    """One host with a job that counts and one whose handlers sleep, on either store."""

    bound = 1.0
    slow = 4 if SANITIZED else 1

    def setUp(self):
        super().setUp()
        self.write_host('[queues.slow]\ntable = "slow"\n')
        if self.store == "dynamodb":
            self.sluice("table", "create", "--queue", "slow", check=True)
        self.write_job("counts", name="counter", queue="orders", options=f'path = "{self.path("seen")}"',
                       extra="concurrency = 2")
        self.write_job("sleeper", name="sleepy", queue="slow", options='duration = "1h"', extra="concurrency = 1")

    def json(self, *words, code=0):
        done = self.sluice(*words, "--output", "json")
        self.assertEqual(code, done.returncode, f"{words}: {done.stdout}{done.stderr}")
        return json.loads(done.stdout)

    def started(self):
        run = self.start().started()
        until("the host is seen", lambda: [host["state"] for host in self.json("hosts")] == ["running"])
        return run

    def control_sockets(self):
        folder = self.path("var", "control")
        return sorted(os.path.join(folder, name) for name in os.listdir(folder)) if os.path.isdir(folder) else []

    def who(self):
        return [entry["what"] for entry in self.json("audit")]

    def test_hosts_jobs_and_what_runs_are_seen(self):
        run = self.started()
        ids = self.send(1, queue="slow")
        host, = self.json("hosts")
        self.assertEqual(("e2e", run.process.pid, "fresh"), (host["name"], host["pid"], host["pulse"]))
        self.assertEqual({"counter", "sleepy"}, {job["job"] for job in host["jobs"]})
        running = until("it is at work", lambda: self.json("running"))
        self.assertEqual((ids[0], "sleepy", "sleeper", 1, False),
                         tuple(running[0][name] for name in ("message", "job", "handler", "attempt", "stuck")))
        self.assertGreater(running[0]["left_seconds"], 0)
        self.assertLessEqual(running[0]["left_seconds"], 60)
        self.assertEqual([], self.json("running", "counter"))
        jobs = {job["job"]: job for job in self.json("jobs")}
        self.assertEqual([f"e2e:{run.process.pid}"], jobs["counter"]["hosts"])
        self.assertEqual((2, 2, False), tuple(jobs["counter"][name] for name in ("workers", "file_workers", "paused")))
        for command in ("hosts", "jobs", "running"):
            text = self.sluice(command, "--output", "text", check=True).stdout
            self.assertIn("e2e" if command == "hosts" else "sleepy", text)
        picture = self.json("top", "--once")
        self.assertEqual({"orders", "slow"}, {queue["queue"] for queue in picture["queues"]})
        self.assertIn("SLOWEST JOBS", self.sluice("top", "--once", "--output", "text", check=True).stdout)
        run.stop()
        until("it takes its record down", lambda: self.json("hosts") == [])

    def test_the_first_look_tells_the_truth(self):
        run = self.start().started()
        host, = until("the host is told of", lambda: self.json("hosts"))
        self.assertEqual("running", host["state"])
        ids = self.send(1, queue="slow")
        until("it is at work", lambda: self.json("running"))
        host, = self.json("hosts")
        self.assertEqual(1, host["running"])
        sleepy = next(job for job in self.json("jobs") if job["job"] == "sleepy")
        self.assertEqual((1, 1), (sleepy["running"], sleepy["claimed"]))
        picture = self.json("top", "--once")
        self.assertEqual(("running", 1), tuple(picture["hosts"][0][name] for name in ("state", "running")))
        held = self.json("get", "--queue", "slow", ids[0])
        self.assertEqual((f"e2e:{run.process.pid}", "sleepy", "sleeper", True),
                         tuple(held["holder"][name] for name in ("host", "job", "handler", "answers")))
        self.assertTrue(held["holder"]["leased_until"])
        text = self.sluice("get", "--queue", "slow", ids[0], "--output", "text", check=True).stdout
        self.assertRegex(text, rf"held by +host e2e:{run.process.pid}, job sleepy, worker \d+, handler sleeper, attempt 1, for ")

    def test_a_stopped_host_is_told_from_one_with_nothing_to_do(self):
        self.write_job("sleeper", name="sleepy", queue="slow", options='duration = "1h"', extra="concurrency = 3")
        run = self.started()
        ids = self.send(3, queue="slow")
        until("they are at work", lambda: len(self.json("running")) == 3)
        run.kill(signal.SIGSTOP)
        done = self.sluice("running", "--output", "json")
        told = json.loads(done.stdout)
        self.assertEqual(set(ids), {entry["message"] for entry in told})
        self.assertEqual({False}, {entry["answers"] for entry in told})
        self.assertRegex(done.stderr, "has not told of itself since .* ago: it does not answer at its control socket.*"
                                      "at work by its crash ledger: 3 handlers")
        sleepy = next(job for job in self.json("jobs") if job["job"] == "sleepy")
        self.assertEqual(3, sleepy["running"], "the ledger's word too")
        self.assertEqual((1, 0), (sleepy["no_answer_hosts"], sleepy["draining_hosts"]))
        self.assertEqual(["sleeper"] * 3, [entry["handler"] for entry in told], "its last record has its jobs")
        self.assertIn("no answer", self.sluice("hosts", "--output", "text").stdout)
        picture = self.sluice("top", "--once", "--output", "text").stdout
        self.assertRegex(picture, r"slow .*no answer")
        self.assertNotRegex(picture, r" \d{4,}d(\s|$)")
        self.assertIs(False, self.json("get", "--queue", "slow", ids[0])["holder"]["answers"])
        with open(self.path("host.toml"), encoding="utf-8") as file:
            self.write("elsewhere.toml", file.read().replace("[host]\n", '[host]\nstate_dir = "elsewhere"\n'))
        far = self.sluice("running", "--config", "elsewhere.toml", "--output", "text").stderr
        self.assertRegex(far, rf"no host that answers has a handler at work; not heard of: e2e:{run.process.pid} for \d+.*"
                              r"in flight all the same: 3 of queue slow")
        far = self.sluice("get", "slow", ids[0], "--config", "elsewhere.toml", "--output", "text").stdout
        self.assertIn("no host tells of a handler at work on it", far)
        run.kill(signal.SIGKILL)
        run.wait()
        done = self.sluice("running", "--output", "text")
        self.assertIn("its process is gone", done.stderr)
        self.assertIn("in flight all the same: 3 of queue slow", done.stderr)

    def test_a_stopped_host_that_has_not_obeyed_is_named(self):
        run = self.started()
        run.kill(signal.SIGSTOP)
        for words in (("pause", "sleepy"), ("log-level", "debug"), ("reload", "e2e")):
            done = self.sluice(*words)
            self.assertEqual(1, done.returncode, done.stdout + done.stderr)
            self.assertIn(f"not obeyed yet by 1 host: e2e:{run.process.pid}", done.stderr)

    def test_a_killed_host_is_no_host_once_the_next_one_runs(self):
        killed = self.started()
        self.send(1, queue="slow")
        until("it is at work", lambda: self.json("running"))
        killed.kill(signal.SIGKILL)
        killed.wait()
        next_one = self.start().started()
        elsewhere = "elsewhere.toml"  # as from another machine, but that the process is seen to be gone
        with open(self.path("host.toml"), encoding="utf-8") as file:
            self.write(elsewhere, file.read().replace("[host]\n", '[host]\nstate_dir = "elsewhere"\n'))
        for words in ((), ("--config", elsewhere)):
            pulses = {host["pid"]: host["pulse"] for host in self.json("hosts", *words)}
            self.assertEqual("silent", pulses.get(killed.process.pid), "at once")
            sleepy = next(job for job in self.json("jobs", *words) if job["job"] == "sleepy")
            self.assertNotIn(f"e2e:{killed.process.pid}", sleepy["hosts"])
        until("the dead one is told of as ended", lambda: {killed.process.pid: "ended", next_one.process.pid: "running"} == {
            host["pid"]: host["state"] for host in self.json("hosts", "--config", elsewhere)})
        self.assertIn("killed", next(host for host in self.json("hosts") if host["state"] == "ended")["left_behind"])
        self.assertRegex(self.sluice("hosts", "--output", "text").stderr, r"has ended, not clean: .*see `sluice crashes`")
        self.assertEqual("settled", self.json("crashes")[0]["time_is"])

    def test_a_paused_job_starts_nothing_until_it_is_resumed(self):
        run = self.started()
        first = self.send(3)
        until("the job works", lambda: sorted(self.lines("seen")) == sorted(first))
        begun = time.monotonic()
        given = self.json("pause", "counter")
        self.assertLess(time.monotonic() - begun, self.bound)
        self.assertEqual([f"e2e:{run.process.pid}"], given["obeyed_by"])
        second = self.send(5)
        counter = next(job for job in self.json("jobs") if job["job"] == "counter")
        self.assertTrue(counter["paused"])
        self.assertEqual("pause", counter["steered"][0]["wish"])
        self.assertIn("paused by", self.sluice("jobs", "--output", "text", check=True).stdout)
        # The other job's work shows that time has passed and the host is well.
        self.send(1, queue="slow")
        until("the other job works", lambda: self.json("running", "sleepy"))
        self.assertEqual(sorted(first), sorted(self.lines("seen")))
        self.assertEqual(5, self.stats()["ready"])
        self.sluice("resume", "counter", check=True)
        until("the rest is done", lambda: sorted(self.lines("seen")) == sorted(first + second))
        again = self.sluice("resume", "counter")
        self.assertEqual(1, again.returncode)
        self.assert_one_line(again.stderr, "is not paused")
        whats = self.who()
        self.assertTrue(any("pause job counter" in what for what in whats), whats)
        self.assertTrue(any("reset" in what for what in whats), whats)

    def test_two_hosts_share_a_rate_limit(self):
        os.remove(self.path("jobs.d", "counter.toml"))
        for number in ("1", "2"):
            self.write_job("counts", name="shared", queue="orders", options=f'path = "{self.path("seen" + number)}"',
                           extra='rate_limit = "20/s"')
            self.start(report=f"report{number}.json").started()
            until(f"host {number} is seen", lambda: len(self.json("hosts")) == int(number))
        self.assertIn("at most 20/s of all hosts", self.sluice("check", "--output", "text", check=True).stdout)
        self.send(400)
        seen = lambda: [len(self.lines("seen1")), len(self.lines("seen2"))]
        until("both have a part", lambda: all(seen()))
        begun, before = time.monotonic(), sum(seen())
        until("they work on", lambda: sum(seen()) >= before + 60)
        passed, done = time.monotonic() - begun, sum(seen()) - before
        self.assertLessEqual(done, 20 * passed + 8, f"{done} in {passed} s")
        job = next(job for job in self.json("jobs") if job["job"] == "shared")
        self.assertEqual("20/s", job["rate_limit"])
        self.assertIn("20/s", self.sluice("jobs", "--output", "text", check=True).stdout)

    def test_a_pause_outlives_its_host(self):
        run = self.started()
        self.sluice("pause", "--queue", "orders", check=True)
        self.assertEqual(0, run.stop(), run.log())
        self.send(2)
        self.started()
        self.send(1, queue="slow")
        until("the other job works", lambda: self.json("running", "sleepy"))
        self.assertEqual([], self.lines("seen"))
        self.sluice("pause", "--reset", "--queue", "orders", check=True)
        until("it goes on", lambda: len(self.lines("seen")) == 2)

    def test_a_job_is_scaled(self):
        self.started()
        ids = self.send(3, queue="slow")
        until("one is at work", lambda: len(self.json("running")) == 1)
        self.json("scale", "sleepy", "3")
        until("all are at work", lambda: {entry["message"] for entry in self.json("running")} == set(ids))
        sleepy = next(job for job in self.json("jobs") if job["job"] == "sleepy")
        self.assertEqual((3, 1), (sleepy["workers"], sleepy["file_workers"]))
        self.sluice("scale", "sleepy", "--reset", check=True)
        until("it is as the file says", lambda: [job["workers"] for job in self.json("jobs") if job["job"] == "sleepy"] == [1])

    def test_a_running_message_is_cancelled(self):
        self.started()
        ids = self.send(1, queue="slow")
        first = until("it is at work", lambda: self.json("running"))[0]["since"]
        other = self.sluice("cancel-running", "orders", ids[0])
        self.assertEqual(1, other.returncode, "queue orders has no message of that id")
        self.assertEqual([False], [entry["cancelled"] for entry in self.json("running")])
        told = self.json("cancel-running", "slow", ids[0])
        self.assertIn("stop token", told["text"])
        until("it has stopped, and may have been taken up again",
              lambda: all(entry["since"] != first for entry in self.json("running")))
        nobody = self.sluice("cancel-running", "--id", "nobody")
        self.assertEqual(1, nobody.returncode)
        self.assert_one_line(nobody.stderr, "no host is at work on message nobody")

    def test_a_message_at_work_is_left_alone(self):
        """On a leased table no record tells that it is at work: it was taken from under its handler."""
        self.started()
        held = self.send(1, queue="slow")[0]
        until("it is at work", lambda: self.json("running"))
        for words in (("cancel",), ("delay", "--for", "1s"), ("move-to-front",), ("edit", "--set", "data=2")):
            refused = self.sluice(words[0], "slow", held, *words[1:])
            self.assertEqual(1, refused.returncode, words)
            self.assert_one_line(refused.stderr, f"message {held} is in flight")
        for words in (("delete", "--all"), ("invalid", "--where", "receive_count >= 0")):
            done = json.loads(self.sluice(words[0], "slow", *words[1:], "--yes", check=True).stdout)
            self.assertEqual(1, done["skipped"], words)
        self.assertEqual(1, self.stats("slow")["total"])
        taken = self.sluice("delete", "slow", held, check=True)
        self.assertIn("was in flight", taken.stderr)

    def test_a_reload_says_what_came_of_it(self):
        self.started()
        self.write_job("noop", name="new", queue="orders")
        told = self.json("reload")
        self.assertIn("added: new", told["text"])
        self.assertIn("new", {job["job"] for job in self.json("jobs")})
        self.write("jobs.d/new.toml", '[job]\nqueue = "orders"\nhandler = "noop"\nconcurency = 3\n')
        refused = self.sluice("reload")
        self.assertEqual(78, refused.returncode, refused.stderr)
        self.assert_one_line(refused.stderr, "new.toml:4", "concurrency")
        self.assertTrue(any("reload" in what for what in self.who()))

    def test_the_log_level_is_steered(self):
        run = self.started()
        self.json("log-level", "warn")
        until("it shows", lambda: self.json("hosts")[0]["log_level"] == "warn")
        self.assertEqual("debug", self.json("hosts")[0]["file_log_level"])
        self.sluice("log-level", "--reset", "e2e", check=False)
        self.sluice("log-level", "--reset", check=False)
        until("it is as the file says", lambda: self.json("hosts")[0]["log_level"] == "debug")
        wrong = self.sluice("log-level", "loud")
        self.assertEqual(64, wrong.returncode)
        self.assertEqual(0, run.stop(), run.log())

    def test_a_drain_by_the_control_socket_is_waited_for(self):
        run = self.started()
        path, = self.control_sockets()
        self.assertEqual(0o600, stat.S_IMODE(os.stat(path).st_mode))
        self.send(2)
        until("done", lambda: len(self.lines("seen")) == 2)
        told = self.json("drain", "--wait")
        self.assertIn("claimed", told["text"])
        self.assertEqual(0, run.process.poll(), "it has ended when the command returns")
        self.assert_certificate(run, done=2)
        self.assertEqual([], self.control_sockets())
        self.assertTrue(any("drain" in what for what in self.who()), self.who())

    def drained_in_vain(self, patience):
        """A host whose handler heeds no stop, the message that it is at, and what a drain that is waited for said."""
        self.write_host('[queues.slow]\ntable = "slow"\n', drain=patience)
        self.write_job("sleeper", name="stubborn", queue="orders", options='duration = "1h"\nignore_stop = true')
        os.remove(self.path("jobs.d", "counter.toml"))
        run = self.started()
        self.send(1)
        message = until("it is at work", lambda: self.json("running", "stubborn"))[0]["message"]
        done = self.sluice("drain", "--wait")
        self.assertEqual(75, done.returncode, done.stdout + done.stderr)
        return run, message, done

    def test_a_drain_that_leaves_work_behind_says_so(self):
        run, message, done = self.drained_in_vain("300ms")
        self.assertEqual(75, run.wait())
        why = f"job stubborn: message {message} was taken from its handler, which had still not returned after"
        self.assertIn(f"NOT clean ({why}", done.stdout)
        self.assertIn(why, run.report()["left_behind"][0])
        crash, = self.json("crashes")
        self.assertIn(why, crash["not_clean"])
        self.assertEqual(([], 1), (crash["held"], crash["given_back"]))
        text = self.sluice("crashes", "--output", "text", check=True).stdout
        self.assertIn("drained, but not clean", text)
        self.assertIn("the host itself had settled", text)
        self.assertNotIn("not settled yet", text)
        self.start().started()
        settled, = until("the next host has settled it", lambda: [one for one in self.json("crashes") if one["settled"]])
        self.assertEqual((crash["not_clean"], 0, 0), (settled["not_clean"], *(settled["settled"][name] for name in ("suspects", "gone"))))

    def test_a_drain_that_is_waited_for_says_what_is_still_at_work(self):
        run, message, done = self.drained_in_vain("5s")
        self.assertRegex(done.stderr, rf"host e2e:{run.process.pid} drains, \ds: at work still: 1 handler: stubborn on {message} \(")

    def test_a_drain_through_the_store_says_what_is_left_behind(self):
        self.write_host('[queues.slow]\ntable = "slow"\n', drain="2s")
        self.write_job("sleeper", name="stubborn", queue="orders", options='duration = "1h"\nignore_stop = true')
        os.remove(self.path("jobs.d", "counter.toml"))
        run = self.started()
        self.send(1)
        message = until("it is at work", lambda: self.json("running", "stubborn"))[0]["message"]
        os.rename(self.path("var", "control"), self.path("var", "elsewhere"))
        done = self.sluice("drain", f"e2e:{run.process.pid}", "--wait")
        self.assertEqual(75, done.returncode, done.stdout + done.stderr)
        self.assertIn(f"has ended and left work behind: job stubborn: message {message} was taken from its handler", done.stderr)
        self.assertEqual(75, run.wait())
        self.assertEqual("ended", self.json("hosts")[0]["state"])

    def test_unknown_names_are_refused(self):
        self.started()
        for words, phrase, code in ((("pause", "countr"), 'did you mean "counter"', 64), (("scale", "sleepi", "2"), 'did you mean "sleepy"', 64),
                                    (("drain", "e2f"), 'did you mean "e2e"', 1), (("reload", "e2f"), 'did you mean "e2e"', 1)):
            done = self.sluice(*words)
            self.assertEqual(code, done.returncode, done.stderr)
            self.assert_one_line(done.stderr, phrase)
        self.assertEqual([], self.who(), "nothing was written")

    def test_a_host_is_steered_through_the_store_alone(self):
        run = self.started()
        os.rename(self.path("var", "control"), self.path("var", "elsewhere"))
        told = self.json("reload", "e2e")
        self.assertEqual([True], [answer["done"] for answer in told["answers"]])
        ids = self.send(1, queue="slow")
        until("it is at work", lambda: self.json("running"))
        self.json("cancel-running", ids[0])
        self.json("drain", "e2e", "--wait")
        self.assertEqual(0, run.wait(), run.log())


class FleetSqlite(Fleet):
    store = "sqlite"

    def test_the_socket_survives_rubbish_and_tells_it_apart(self):
        self.started()
        path, = self.control_sockets()

        def say(data):
            with socket.socket(socket.AF_UNIX) as caller:
                caller.settimeout(30)
                caller.connect(path)
                with contextlib.suppress(BrokenPipeError):
                    caller.sendall(data)
                    caller.shutdown(socket.SHUT_WR)
                answer = b""
                # A caller that says more than is taken is reset behind its answer.
                with contextlib.suppress(ConnectionResetError):
                    while chunk := caller.recv(4096):
                        answer += chunk
                return answer

        for rubbish in (b"\n", b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 10_000, b'{"command":"drain"', b"[" * 100_000 + b"\n"):
            answer = say(rubbish)
            self.assertTrue(answer == b"" or json.loads(answer)["ok"] is False, answer)
        self.assertEqual("e2e", json.loads(say(b'{"command":"about"}\n'))["host"]["name"])
        self.assertEqual("running", self.json("hosts")[0]["state"])

    def test_a_killed_hosts_socket_is_in_nobodys_way(self):
        run = self.started()
        run.kill(signal.SIGKILL)
        run.wait()
        self.assertEqual(1, len(self.control_sockets()))
        second = self.start().started()
        self.assertEqual(1, len(self.control_sockets()))
        self.sluice("drain", f"e2e:{second.process.pid}", "--wait", check=True)
        self.assertEqual(0, second.wait())

    def test_a_host_without_a_state_folder_is_steered_all_the_same(self):
        self.write_host('[queues.slow]\ntable = "slow"\n')
        with open(self.path("host.toml"), encoding="utf-8") as file:
            text = file.read()
        self.write("file", "")
        self.write("host.toml", text.replace("[host]\n", '[host]\nstate_dir = "file/none"\n'))
        run = self.started()
        self.assertIn("no control socket", run.log())
        self.json("drain", "e2e", "--wait")
        self.assertEqual(0, run.wait(), run.log())


class FleetDynamo(Fleet):
    store = "dynamodb"
    bound = 4.0

    def test_a_table_that_does_not_answer_hides_no_host_of_this_machine(self):
        self.started()
        os.kill(self.emulator.process.pid, signal.SIGSTOP)
        try:
            begun = time.monotonic()
            done = self.sluice("top", "--once", "--output", "text")
            self.assertLess(time.monotonic() - begun, 15 * self.slow)
            self.assertEqual(1, done.returncode, done.stdout)
            self.assertRegex(done.stdout, r"hosts 1\+, workers 3\+, running 0\+")
            self.assertEqual(2, len(re.findall(r"\?  +\?  .*(not counted: its store|no answer from)", done.stdout)), done.stdout)
            begun = time.monotonic()
            done = self.sluice("hosts", "--output", "text")
            self.assertLess(time.monotonic() - begun, 12 * self.slow)
            self.assertEqual(1, done.returncode)
            self.assertIn("e2e:", done.stdout)
            self.assertIn("hosts of other machines: ", done.stderr)
            begun = time.monotonic()
            done = self.sluice("jobs", "--output", "text")
            self.assertLess(time.monotonic() - begun, 12 * self.slow)
            self.assertEqual(1, done.returncode)
            self.assertRegex(done.stdout, "counter .*(working|cannot work)")
        finally:
            os.kill(self.emulator.process.pid, signal.SIGCONT)


del Fleet  # it has no store of its own

if __name__ == "__main__":
    main()
