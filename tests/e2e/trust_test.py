#!/usr/bin/env python3
"""What others may write decides nothing: plugins, job files, host file and state folder, named with mode and mend."""

import hashlib
import os
import shutil
import signal

from support import FIXTURE_PLUGINS, Case, main, until

CONFIGURATION = 78


class Trust(Case):
    def setUp(self):
        super().setUp()
        self.write_job("counts", options=f'path = "{self.path("worked")}"')
        self.send(1)

    def refused(self, *phrases):
        for command in (("check",), ("run", "--until-empty")):
            done = self.sluice(*command)
            self.assertEqual(CONFIGURATION, done.returncode, done.stderr)
            for phrase in phrases:
                self.assertRegex(done.stderr, phrase)
        self.assertEqual([], self.lines("worked"))
        for command in ("check", "run"):
            words = (command, "--until-empty") if command == "run" else (command,)
            self.assertEqual(0, self.sluice(*words, "--allow-insecure-files").returncode)
        self.assertEqual(1, len(self.lines("worked")))

    def test_a_plugin_that_everybody_may_write(self):
        os.chmod(self.path("plugins", "counts.so"), 0o777)
        self.refused(r"counts\.so is not used, because it may be written by everybody \(mode 0777\): chmod go-w",
                     "--allow-insecure-files")

    def test_a_folder_in_which_everybody_may_put_a_plugin(self):
        os.chmod(self.path("plugins"), 0o777)
        self.refused(r"the folder \S+/plugins may be written by everybody \(mode 0777\)")

    def test_a_job_file_that_everybody_may_write(self):
        os.chmod(self.path("jobs.d", "orders.toml"), 0o666)
        self.refused(r"orders\.toml: .*mode 0666")

    def test_a_host_file_that_everybody_may_write(self):
        os.chmod(self.path("host.toml"), 0o666)
        self.refused(r"host\.toml: .*mode 0666")

    def test_a_config_map_works(self):
        os.mkdir(self.path("map"))
        os.mkdir(self.path("map", "..2026"))
        os.rename(self.path("jobs.d", "orders.toml"), self.path("map", "..2026", "orders.toml"))
        os.symlink("..2026", self.path("map", "..data"))
        os.symlink("..data/orders.toml", self.path("map", "orders.toml"))
        with open(self.path("host.toml"), encoding="utf-8") as file:
            text = file.read()
        self.write("host.toml", text.replace("[host]", '[host]\njobs = ["map/*.toml"]', 1))
        done = self.sluice("run", "--until-empty")
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(1, len(self.lines("worked")))

    def test_a_reload_takes_nothing_from_others(self):
        run = self.start().started()
        self.write_job("noop", name="new", queue="new")
        os.chmod(self.path("plugins", "noop.so"), 0o666)
        run.kill(signal.SIGHUP)
        until("refused", lambda: "noop.so is not used" in run.log())
        self.sluice("send", "--queue", "new", "--data", "1", check=True)
        self.assertEqual(1, self.stats("new")["total"])
        os.chmod(self.path("plugins", "noop.so"), 0o644)
        run.kill(signal.SIGHUP)
        until("taken once its mode is mended", lambda: self.stats("new")["total"] == 0)
        self.assertEqual(0, run.stop(), run.log())

    def test_a_reload_runs_nothing_of_what_others_put_in_the_place_of_a_loaded_plugin(self):
        mark = self.path("mark")
        run = self.start(environment={**self.environment, "SLUICE_TEST_MARK": mark}).started()
        shutil.copy(os.path.join(FIXTURE_PLUGINS, "marks_at_load.so"), self.path("next"))
        os.chmod(self.path("next"), 0o666)
        os.rename(self.path("next"), self.path("plugins", "counts.so"))
        refusal = "counts.so is not used, because it may be written by everybody"
        for _ in range(2):
            before = run.log().count(refusal)
            run.kill(signal.SIGHUP)
            until("refused", lambda before=before: run.log().count(refusal) > before)
        self.send(1)
        until("the loaded code works on", lambda: len(self.lines("worked")) == 2)
        self.assertEqual(0, run.stop(), run.log())
        self.assertFalse(os.path.exists(mark), "not even where plugins are tried")

    def pin(self, digest):
        self.write_job("counts", options=f'path = "{self.path("worked")}"',
                       extra=f'[job.plugin]\nfile = "counts.so"\nsha256 = "{digest}"')

    def digest(self, plugin="counts"):
        with open(self.path("plugins", plugin + ".so"), "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()

    def test_a_pinned_plugin_works(self):
        self.pin(self.digest().upper())
        self.assertEqual(0, self.sluice("check").returncode)
        done = self.sluice("run", "--until-empty")
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(1, len(self.lines("worked")))

    def test_no_code_of_a_swapped_plugin_runs_anywhere(self):
        meant = self.digest()
        self.pin(meant)
        # Its start-up code ends every process that runs it, and the trial would say so.
        shutil.copy(os.path.join(FIXTURE_PLUGINS, "crashes_at_load.so"), self.path("plugins", "counts.so"))
        for command in (("check",), ("run", "--until-empty")):
            done = self.sluice(*command)
            self.assertEqual(CONFIGURATION, done.returncode, done.stderr)
            self.assertRegex(done.stderr, rf"orders\.toml:6:\d+: \S+/counts\.so has the sha256 {self.digest()}, "
                                          rf"and a job pins {meant}: ")
            self.assertNotIn("ended the process", done.stderr)
        done = self.sluice("plugins")
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertRegex(done.stdout, rf"(?s)rejected.*pins {meant}")
        self.assertNotIn("ended the process", done.stdout)

    def test_a_reload_takes_no_swapped_plugin(self):
        run = self.start().started()
        self.write_job("noop", name="new", queue="new", extra=f'[job.plugin]\nfile = "noop.so"\nsha256 = "{"0" * 64}"')
        run.kill(signal.SIGHUP)
        until("refused", lambda: "and a job pins " + "0" * 64 in run.log())
        self.assertIn("not reloaded", run.log())
        self.assertEqual(0, run.stop(), run.log())


if __name__ == "__main__":
    main()
