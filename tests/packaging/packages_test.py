#!/usr/bin/env python3
"""The Debian packages, made of this build: what is in them, what they ask for, what lintian says. What they do on a machine is
tested by tests/packaging/debian12.py, which takes a release build, root and a Debian 12: ./dev package check."""

import glob
import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import support

CPACK = os.environ.get("SLUICE_CPACK", "cpack")
NAMES = {"sluice", "sluice-plugins", "sluice-sdk", "libsluice-client1", "libsluice-client-dev"}


def run(*words, **options):
    return subprocess.run(words, capture_output=True, text=True, timeout=support.PATIENCE * 5, check=False, **options)


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not shutil.which("dpkg-shlibdeps"):
            raise unittest.SkipTest("SKIPPED: no dpkg-dev; ./dev deps installs it")
        cls.folder = tempfile.mkdtemp(prefix="sluice-packages-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        done = run(CPACK, "-B", cls.folder, cwd=support.BUILD)
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr)
        cls.files = {os.path.basename(file).split("_")[0]: file for file in glob.glob(os.path.join(cls.folder, "*.deb"))}
        cls.unpacked = {}
        os.mkdir(os.path.join(cls.folder, "unpacked"))
        for name, file in cls.files.items():
            cls.unpacked[name] = os.path.join(cls.folder, "unpacked", name)
            run("dpkg-deb", "-R", file, cls.unpacked[name])

    def control(self, name, field):
        return run("dpkg-deb", "-f", self.files[name], field).stdout.strip()

    def listing(self, name):
        root = self.unpacked[name]
        return {os.path.relpath(os.path.join(path, file), root) for path, _, files in os.walk(root) for file in files}

    def read(self, name, *path):
        with open(os.path.join(self.unpacked[name], *path), encoding="utf-8") as file:
            return file.read()

    def test_their_names(self):
        self.assertEqual(NAMES, set(self.files))
        for name in NAMES:
            self.assertEqual("all" if name == "sluice-sdk" else run("dpkg", "--print-architecture").stdout.strip(),
                             self.control(name, "Architecture"))

    def test_what_they_ask_for(self):
        for library in ("libcurl4", "libsqlite3-0", "libssl3", "libyaml-cpp0.", "libpq5", "libmariadb3", "libssh-4", "adduser"):
            self.assertIn(library, self.control("sluice", "Depends"))
        for library in ("libssl3", "libnats3."):
            self.assertIn(library, self.control("sluice-plugins", "Depends"))
            if library != "libssl3":
                self.assertNotIn(library, self.control("sluice", "Depends"), "the host does not link what a plugin does")
        self.assertIn("libsluice-client1 (= ", self.control("libsluice-client-dev", "Depends"))
        self.assertEqual("", self.control("sluice-sdk", "Depends"))
        self.assertRegex(self.read("libsluice-client1", "DEBIAN", "shlibs"), r"^libsluice-client 1 libsluice-client1 \(>= ")

    def test_what_is_in_them(self):
        host = self.listing("sluice")
        for file in ("usr/bin/sluice", "usr/bin/dynamomq", "etc/sluice/host.toml", "usr/lib/systemd/system/sluice.service",
                     "usr/lib/systemd/system/sluice@.service", "usr/share/man/man1/sluice.1.gz",
                     "usr/share/zsh/vendor-completions/_sluice", "usr/share/doc/sluice/examples/host.toml"):
            self.assertTrue(file in host or file.replace("usr/lib/systemd", "lib/systemd") in host, file)
        plugins = {os.path.basename(file) for file in self.listing("sluice-plugins") if file.endswith(".so")}
        self.assertEqual({"log.so", "verify-file.so", "exec.so", "webhook.so", "nats.so", "sns.so", "queue.so"}, plugins)
        self.assertTrue(any(file.endswith("sluice-sdk.pc") for file in self.listing("sluice-sdk")))
        self.assertTrue(any(file.endswith("sluice-client.pc") for file in self.listing("libsluice-client-dev")))
        for name in NAMES:
            with gzip.open(os.path.join(self.unpacked[name], "usr/share/doc", name, "changelog.gz"), "rt") as changes:
                self.assertIn("# Changelog", changes.read())

    def test_configuration_is_its_owners(self):
        self.assertEqual("/etc/sluice/host.toml\n", self.read("sluice", "DEBIAN", "conffiles"))
        done = run(os.path.join(self.unpacked["sluice"], "usr/bin/sluice"), "check", "--config",
                   os.path.join(self.unpacked["sluice"], "etc/sluice/host.toml"))
        self.assertIn("there is no job", done.stdout + done.stderr)
        self.assertNotIn("error", done.stdout.lower())

    def test_scripts_are_sound(self):
        for script in ("postinst", "prerm", "postrm"):
            path = os.path.join(self.unpacked["sluice"], "DEBIAN", script)
            self.assertEqual(0o755, os.stat(path).st_mode & 0o777)
            self.assertEqual(0, run("sh", "-n", path).returncode)
            self.assertIn("set -e", self.read("sluice", "DEBIAN", script))

    def test_lintian(self):
        if not shutil.which("lintian"):
            self.skipTest("SKIPPED: no lintian; ./dev deps installs it")
        found = run("lintian", "--allow-root", *self.files.values()).stdout
        self.assertEqual([], re.findall(r"^E:.*$", found, re.M))


if __name__ == "__main__":
    unittest.main()
