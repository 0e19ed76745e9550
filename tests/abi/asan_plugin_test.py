#!/usr/bin/env python3
"""AddressSanitizer in a plugin alone: the host is built without it, and runs the plugin in Runners."""

import json
import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import support
from support import Case

PLUGIN = os.path.join(support.FIXTURE_PLUGINS, "foreign", "gcc_asan.so")


def runtime():
    """The sanitizer's library for gcc's programs; empty where it is not installed."""
    try:
        shown = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
    return shown if os.path.isabs(shown) else ""


@unittest.skipIf(support.SANITIZED, "SKIPPED: the host has a sanitizer itself")
@unittest.skipUnless(runtime() and os.path.exists(PLUGIN), "SKIPPED: gcc's AddressSanitizer is not installed")
class AddressSanitizer(Case):
    def setUp(self):
        super().setUp()
        # Debian's libp11-kit, which libcurl brings, waits for ever at the exit of any program under the sanitizer; the host's
        # watchdog ends it then.
        self.write_host(drain="1s")
        shutil.copy(PLUGIN, self.path("plugins", "foreign.so"))
        self.write("jobs.d/orders.toml", '[job]\nqueue = "orders"\nhandler = "foreign"\nisolation = "process"\nconcurrency = 1\n[job.retry]\nmax_attempts = 1\n')
        self.preloaded = dict(self.environment, LD_PRELOAD=runtime(), ASAN_OPTIONS="detect_leaks=0")

    def test_what_it_finds_ends_one_message_and_not_the_host(self):
        self.write_host("[queues.answers]\n", drain="1s")
        self.sluice("send", "--queue", "orders", "--text", "good", check=True)
        bad = self.sluice("send", "--queue", "orders", "--text", "overflow", check=True).stdout.strip()
        self.sluice("send", "--queue", "orders", "--text", "good too", check=True)
        run = self.start("--until-empty", environment=self.preloaded)
        self.assertEqual(0, run.wait(), run.log())
        self.assertRegex(run.log(), r"AddressSanitizer: heap-buffer-overflow")
        self.assertRegex(run.log(), r"foreign\.cpp:\d+")
        self.assert_certificate(run, done=2, stranded=0)
        dead = json.loads(self.sluice("ls", "--dlq", "--queue", "orders", "--json", check=True).stdout)
        self.assertEqual([bad], [message["id"] for message in dead["statuses"]])

    def test_without_its_library_in_front_the_plugin_is_refused_with_the_mend(self):
        done = self.sluice("check")
        self.assertEqual(78, done.returncode, done.stdout + done.stderr)
        self.assertRegex(done.stdout + done.stderr, r"LD_PRELOAD")


if __name__ == "__main__":
    unittest.main()
