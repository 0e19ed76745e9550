#!/usr/bin/env python3
"""The host ends when it is told to, whatever hangs: each thread, each hang, one signal and two."""

import collections
import contextlib
import ctypes
import fcntl
import json
import os
import shutil
import signal
import struct
import subprocess
import termios
import time

from support import BUILD, FIXTURE_PLUGINS, SLUICE, Case, Run, free_port, http, main, until

DRAIN = 1.0
# What design 6 promises, and what a busy machine may add to it.
SLACK = float(os.environ.get("SLUICE_TEST_SLACK", "1.0"))
BOUND_ONE = DRAIN + 1 + SLACK
BOUND_TWO = 2 + SLACK
ENVIRONMENT_KEY = "STALLING_DISK"


class Endings(Case):
    def setUp(self):
        super().setUp()
        self.write_host(drain=f"{int(DRAIN * 1000)}ms")

    def hanging_job(self, where, name="orders", queue="orders", how="hang", once=False, extra="concurrency = 2"):
        options = f'where = "{where}"\nhow = "{how}"\nlog = "{self.path("worked")}"\n'
        if once:
            options += f'unless_new = "{self.path("marker-" + name)}"\n'
        self.write_job("hangs", name=name, queue=queue, options=options, extra=extra)

    def ends_in_time(self, run, codes, twice=False, limit=None):
        """Signals the host once or twice; it has to end in time, with one of the codes. Returns its certificate line."""
        begin = time.monotonic()
        run.kill(signal.SIGTERM)
        if twice:
            run.kill(signal.SIGINT)  # the kernel keeps one of a kind
        code = run.wait()
        took = time.monotonic() - begin
        self.assertIn(code, codes, run.log())
        self.assertLess(took, limit or (BOUND_TWO if twice else BOUND_ONE), run.log())

    def assert_said(self, run):
        lines = [line for line in run.log().splitlines() if line.startswith("drain certificate: ")]
        self.assertEqual(1, len(lines), run.log())
        self.assert_certificate(run)
        return lines[0]

    def hangup(self, run):
        run.kill(signal.SIGHUP)

    # A handler

    def test_a_handler_that_never_returns(self):
        for twice in (False, True):
            with self.subTest(twice=twice):
                self.hanging_job("handle")
                self.send(1)
                run = self.start()
                until("it hangs", lambda: len(self.lines("worked")) > 0)
                os.remove(self.path("worked"))
                self.ends_in_time(run, [75], twice)
                self.assert_said(run)

    # Constructors

    def test_a_constructor_that_hangs_at_the_start(self):
        for twice in (False, True):
            with self.subTest(twice=twice):
                with contextlib.suppress(FileNotFoundError):
                    os.remove(self.path("marker-orders"))
                self.hanging_job("create", once=True)
                run = self.start()
                until("the trial is over", lambda: os.path.exists(self.path("marker-orders")))
                self.ends_in_time(run, [0], twice)
                self.assert_said(run)

    def test_a_constructor_that_hangs_at_a_reload_leaves_the_others_at_work_and_the_end_in_time(self):
        self.hanging_job("nowhere")
        run = self.start().started()
        self.hanging_job("create", name="new", queue="new", once=True)
        self.hangup(run)
        until("the trial is over", lambda: os.path.exists(self.path("marker-new")))
        ids = self.send(3)
        until("the others work", lambda: sorted(self.lines("worked")) == sorted(ids))
        self.ends_in_time(run, [0])
        self.assert_said(run)
        self.assertEqual(3, run.report()["total"]["done"])
        self.assertEqual(0, self.stats()["total"])

    # Destructors

    def test_a_destructor_that_hangs_at_the_end(self):
        for twice in (False, True):
            with self.subTest(twice=twice):
                self.hanging_job("destroy")
                self.send(1)
                run = self.start()
                until("it has worked", lambda: self.stats()["total"] == 0)
                self.ends_in_time(run, [0], twice)
                self.assert_said(run)

    def test_a_destructor_that_hangs_at_a_reload_holds_up_nothing(self):
        self.hanging_job("destroy")
        self.send(1)
        run = self.start()
        until("it has worked", lambda: self.stats()["total"] == 0)
        for concurrency in (3, 4):  # the second reload meets what is left of the first
            before = run.log().count("reloaded")
            self.hanging_job("destroy", extra=f"concurrency = {concurrency}")
            self.hangup(run)
            until("reloaded", lambda: run.log().count("reloaded") > before)
            self.send(1)
            until("the new one works", lambda: self.stats()["total"] == 0)
        self.ends_in_time(run, [0])
        self.assertEqual(3, run.report()["total"]["done"])
        self.assert_said(run)

    # Start-up code

    def test_start_up_code_that_never_returns_does_not_hold_up_the_end(self):
        self.write_job("stops_at_load", name="stops")
        run = self.start()
        time_of_trial = f"/proc/{run.process.pid}/task"

        def a_child():
            with contextlib.suppress(FileNotFoundError):
                for task in os.listdir(time_of_trial):
                    with open(f"{time_of_trial}/{task}/children", encoding="utf-8") as file:
                        if file.read().split():
                            return True
            return False
        until("it is tried", a_child)
        self.ends_in_time(run, [0], limit=DRAIN + SLACK)
        self.assert_said(run)

    def refused(self, *phrases):
        done = self.sluice("run", "--until-empty")
        self.assertEqual(78, done.returncode, done.stderr)
        for phrase in phrases:
            self.assertRegex(done.stderr, phrase)
        done = self.sluice("check")
        self.assertEqual(78, done.returncode, done.stderr)
        for phrase in phrases:
            self.assertRegex(done.stderr, phrase)

    def test_plugins_that_end_the_process_are_refused_by_name(self):
        for name, phrase in (("crashes_at_load", "signal 6"), ("exits_at_load", 'exit code 1, and said "not in this')):
            with self.subTest(name):
                self.write_job(name, name="bad")
                self.refused(name + r"\.so", phrase, "loaded")
                os.remove(self.path("plugins", name + ".so"))

    def test_a_plugin_that_never_loads_is_refused_by_name(self):
        self.write_job("stops_at_load", name="bad")
        self.refused(r"stops_at_load\.so", "did not return within 10s", "loaded")

    def test_constructors_that_end_the_process_are_refused_with_the_jobs_place(self):
        for how, phrase in (("abort", "signal 6"), ("exit", "exit code 3")):
            with self.subTest(how):
                self.hanging_job("create", how=how)
                self.refused(r"orders\.toml:3:\d+: ", "hangs", phrase, "created")

    def test_a_reload_survives_every_one_of_them(self):
        self.hanging_job("nowhere")
        run = self.start().started()
        for name in ("crashes_at_load", "exits_at_load"):
            self.write_job(name, name="bad")
            self.hangup(run)
            until("refused", lambda: name + ".so ended the process" in run.log())
        self.hanging_job("create", name="bad", how="exit")
        self.hangup(run)
        until("refused", lambda: "exit code 3" in run.log())
        os.remove(self.path("jobs.d", "bad.toml"))
        ids = self.send(2)
        until("the host works on", lambda: sorted(self.lines("worked")) == sorted(ids))
        self.ends_in_time(run, [0])

    def test_a_plugin_with_a_sanitizer_is_refused(self):
        if not shutil.which("g++"):
            self.skipTest("SKIPPED: needs g++, whose sanitizer's runtime is a library")
        self.hanging_job("nowhere")
        run = self.start().started()
        source = os.path.join(os.path.dirname(__file__), "..", "fixtures", "plugins", "noop.cpp")
        sdk = os.path.join(os.path.dirname(__file__), "..", "..", "sdk", "include")
        built = subprocess.run(["g++", "-std=c++20", "-shared", "-fPIC", "-fsanitize=address", "-I", sdk, source, "-o",
                                self.path("plugins", "sanitized.so")], capture_output=True, text=True, check=False)
        if built.returncode != 0:
            self.skipTest("SKIPPED: g++ has no address sanitizer here")
        if subprocess.run(["grep", "-q", "__asan_init", SLUICE], check=False).returncode == 0:
            self.skipTest("SKIPPED: this host has one itself")
        self.hangup(run)
        until("refused", lambda: "sanitized.so ended the process" in run.log())
        self.assertRegex(run.log(), "ASan runtime")
        self.ends_in_time(run, [0])

    # Threads that cannot be made

    # A stack of 8 MiB for each of a thousand threads does not fit into it.
    ROOM = "ulimit -s 8192; ulimit -v 4000000"

    def limited(self, limits=ROOM):
        log = self.path("limited.log")
        with open(log, "w", encoding="utf-8") as sink:
            process = subprocess.Popen(["bash", "-c", limits + '; exec "$0" "$@"', SLUICE, "run", "--drain-report",
                                        self.path("limited.json")],
                                       cwd=self.folder, env=self.environment, stdout=sink, stderr=subprocess.STDOUT)
        run = Run(process, log, self.path("limited.json"))
        self.runs.append(run)
        return run

    def skip_sanitized(self):
        if subprocess.run(["grep", "-qE", "__asan_init|__tsan_init", SLUICE], check=False).returncode == 0:
            self.skipTest("SKIPPED: sanitizers take more address space than any limit")

    def test_a_start_without_room_for_its_threads_names_the_limit(self):
        self.skip_sanitized()
        self.hanging_job("nowhere", extra="concurrency = 1000")
        run = self.limited()
        self.assertEqual(78, run.wait(), run.log())
        self.assertRegex(run.log(), r"ulimit -v")
        self.assertNotRegex(run.log(), "internal error")

    def test_a_start_with_few_descriptors_names_the_limit(self):
        self.hanging_job("nowhere")
        for most in (7, 10, 19, 20, 24):
            with self.subTest(most=most):
                run = self.limited(f"ulimit -n {most}")
                self.assertEqual(78, run.wait(), run.log())
                self.assertRegex(run.log(), r"ulimit -n")

    def test_a_reload_without_room_for_its_threads_leaves_the_job_and_the_others_as_they_are(self):
        self.skip_sanitized()
        self.hanging_job("nowhere")
        self.hanging_job("nowhere", name="other", queue="other")
        run = self.limited().started()
        self.hanging_job("nowhere", extra="concurrency = 1000")
        self.hangup(run)
        until("refused", lambda: "ulimit -v" in run.log())
        ids = self.send(3) + self.send(3, queue="other")
        until("both work on", lambda: sorted(self.lines("worked")) == sorted(ids))
        self.ends_in_time(run, [0])
        self.assert_certificate(run, done=6, released=0)

    # The log's reader

    def start_unread(self):
        reader, writer = os.pipe()
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        process = subprocess.Popen([SLUICE, "run", "--drain-report", self.path("report.json")], cwd=self.folder,
                                   env=self.environment, stdout=subprocess.DEVNULL, stderr=writer)
        os.close(writer)
        self.addCleanup(os.close, reader)
        run = Run(process, os.devnull, self.path("report.json"))
        self.runs.append(run)
        return run, reader

    def test_a_reader_of_stderr_that_stalls(self):
        for twice in (False, True):
            with self.subTest(twice=twice):
                self.write_job("log", name="talks", queue="talks")
                self.hanging_job("nowhere")
                with contextlib.suppress(FileNotFoundError):
                    os.remove(self.path("worked"))
                self.send(200, queue="talks")  # what the log says of each is more than the pipe holds
                ids = self.send(500)
                run, reader = self.start_unread()
                until("all are worked off", lambda: len(self.lines("worked")) == len(ids))
                until("all has been said", lambda: self.stats("talks")["total"] == 0)
                waiting = struct.unpack("i", fcntl.ioctl(reader, termios.FIONREAD, b"\0" * 4))[0]
                self.assertGreater(waiting, 0, "nobody has read it")
                self.ends_in_time(run, [0], twice)
                self.assertEqual(700, run.report()["total"]["claimed"])

    def test_a_reader_of_stderr_that_comes_late_gets_the_certificate(self):
        self.write_job("log", name="talks", queue="talks")
        self.hanging_job("nowhere")
        self.send(200, queue="talks")
        run, reader = self.start_unread()
        self.send(20)
        until("all are worked off", lambda: len(self.lines("worked")) == 20 and self.stats("talks")["total"] == 0)
        begin = time.monotonic()
        run.kill(signal.SIGTERM)
        text = b""
        while chunk := os.read(reader, 65536):
            text += chunk
        self.assertEqual(0, run.wait())
        self.assertLess(time.monotonic() - begin, BOUND_ONE)
        self.assertIn(b"drain certificate: claimed 220", text)

    # The store

    def stalling(self):
        self.stall = self.path("stalled")
        environment = dict(self.environment)
        environment["LD_PRELOAD"] = os.path.abspath(os.path.join(BUILD, "tests", "preload", "stalling_disk.so"))
        environment[ENVIRONMENT_KEY] = self.stall
        return environment

    def test_a_disk_that_never_flushes(self):
        for twice in (False, True):
            with self.subTest(twice=twice):
                self.hanging_job("nowhere")
                with contextlib.suppress(FileNotFoundError):
                    os.remove(self.path("worked"))
                    os.remove(self.path("stalled"))
                run = self.start(environment=self.stalling()).started()
                ids = self.send(5)
                until("it works", lambda: len(self.lines("worked")) >= len(ids))
                with open(self.stall, "w", encoding="utf-8"):
                    pass
                self.send(50)
                until("it has begun more", lambda: len(self.lines("worked")) > len(ids))
                self.ends_in_time(run, [0, 75], twice)
                self.assert_said(run)
                os.remove(self.stall)

    def test_files_that_may_not_grow_do_not_end_the_host(self):
        self.write_host(drain="1s")
        self.hanging_job("nowhere")
        self.send(1)
        run = self.limited("ulimit -f 600")
        until("it works", lambda: len(self.lines("worked")) == 1)
        self.sluice("send", "--queue", "orders", "-", data=('"' + "x" * 9000 + '"\n') * 100, check=True)
        until("the log of the store cannot grow", lambda: "error" in run.log())
        self.ends_in_time(run, [0, 75])


class EndingsThreads(Endings):
    """Each thread of a host hangs once, wherever it is, and the host is told to end."""

    def hang(self, pid, thread):
        """Until the signal's handler, which never returns, has the thread."""
        ctypes.CDLL(None).tgkill(pid, thread, signal.SIGUSR1)

        def has_it():
            with open(f"/proc/{pid}/task/{thread}/status", encoding="ascii") as file:
                blocked = next(line for line in file if line.startswith("SigBlk:"))
            return int(blocked.split()[1], 16) >> (signal.SIGUSR1 - 1) & 1
        until("the thread hangs", has_it)

    def working_host(self):
        """With every thread that a host can have; their numbers and names, the oldest first unless the numbers have begun again."""
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.path("worked"))
        port = free_port()
        self.write_host(drain=f"{int(DRAIN * 1000)}ms", http_port=port)
        run = self.start().started()
        ids = self.send(3)
        # What a host before this one had done and could not settle any more comes again.
        until("it works", lambda: len(self.lines("worked")) >= len(ids))
        until("a scrape", lambda: http(port, "/metrics")[0] == 200)
        threads = {}
        for thread in sorted(map(int, os.listdir(f"/proc/{run.process.pid}/task"))):
            with contextlib.suppress(FileNotFoundError), \
                    open(f"/proc/{run.process.pid}/task/{thread}/comm", encoding="utf-8") as file:
                threads[thread] = file.read().strip()
        return run, threads

    def test_every_thread_may_hang_but_the_one_that_hears_signals(self):
        self.hanging_job("threads")
        run, threads = self.working_host()
        names, main_thread = list(threads.values()), threads[run.process.pid]
        self.assertEqual(1, names.count("signals"), names)
        self.assertEqual(1, names.count("watchdog"), names)
        self.ends_in_time(run, [0])
        for name, count in collections.Counter(names).items():
            if name == "signals":
                continue
            # By its name: a host whose threads' numbers begin again at the least one has them in another order.
            for which in range(count):
                for twice in (False, True) if name == main_thread else (False,):
                    with self.subTest(thread=f"{name} {which}", twice=twice):
                        run, threads = self.working_host()
                        self.hang(run.process.pid, [number for number, its in threads.items() if its == name][which])
                        self.ends_in_time(run, [0, 75], twice)
                        self.assert_certificate(run)


class EndingsDynamo(Endings):
    store = "dynamodb"

    def stop_the_store(self):
        os.kill(self.emulator.process.pid, signal.SIGSTOP)
        self.addCleanup(os.kill, self.emulator.process.pid, signal.SIGCONT)

    def test_a_store_that_does_not_answer(self):
        for twice in (False, True):
            with self.subTest(twice=twice):
                self.write_job("sleeper", options='duration = "1h"', extra="concurrency = 2")
                self.send(3)
                port = free_port()
                self.write_host(drain=f"{int(DRAIN * 1000)}ms", http_port=port)
                run = self.start().started()
                until("it works", lambda: self.stats()["in_flight"] >= 2)
                self.stop_the_store()
                until("a scrape", lambda: http(port, "/metrics")[0] == 200)
                self.ends_in_time(run, [0, 75], twice)
                self.assert_said(run)
                os.kill(self.emulator.process.pid, signal.SIGCONT)


for name in [name for name in dir(Endings) if name.startswith("test_")]:
    for case in (EndingsDynamo, EndingsThreads):
        setattr(case, name, None)  # what the store has no part in is not run twice


if __name__ == "__main__":
    main()
