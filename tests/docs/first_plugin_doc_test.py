#!/usr/bin/env python3
"""docs/start/first-plugin.md as its reader types it, from nothing to a message worked off in production.

Where the page has Debian packages, systemd and the root's folders, this has an installation below a prefix and small
programs of these names; `./dev package check` follows the same page in a Debian 12 with the real ones."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import yaml

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import doc_page
import support

CMAKE = os.environ.get("SLUICE_CMAKE", "cmake")
PAGE = "docs/start/first-plugin.md"
SUDO = """#!/bin/sh
[ "$1" = -u ] && shift 2
exec "$@"
"""
SYSTEMCTL = """#!/bin/sh
sluice run --config {root}/etc/sluice/host.toml > {root}/journal 2>&1 &
echo $! > {root}/pid
"""


class FirstPlugin(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="sluice-first-")
        self.addCleanup(shutil.rmtree, self.root, ignore_errors=True)
        self.addCleanup(self.end_host)
        for component in ("host", "plugins", "sdk"):
            self.succeeds(CMAKE, "--install", support.BUILD, "--component", component, "--prefix", os.path.join(self.root, "usr"))
        self.environment = {"PATH": f"{self.root}/bin:{self.root}/usr/bin:{os.environ['PATH']}", "HOME": self.root,
                            "CMAKE_PREFIX_PATH": f"{self.root}/usr"}
        for folder in ("bin", "work", "etc/sluice/jobs.d", "var/lib/sluice"):
            os.makedirs(os.path.join(self.root, folder))
        self.write("bin/sudo", SUDO, 0o755)
        self.write("bin/systemctl", SYSTEMCTL.format(root=self.root), 0o755)
        self.write("etc/sluice/host.toml", self.here(doc_page.read("packaging/debian/host.toml")))
        self.folder = os.path.join(self.root, "work")

    def end_host(self):
        try:
            with open(os.path.join(self.root, "pid"), encoding="utf-8") as file:
                os.kill(int(file.read()), 9)
        except (OSError, ValueError):
            pass

    def succeeds(self, *words):
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        self.assertEqual(0, done.returncode, f"{words}\n{done.stdout}{done.stderr}")

    def write(self, name, text, mode=0o644):
        path = os.path.join(self.root, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)

    def here(self, text):
        """The machine's folders are below the prefix."""
        for folder in ("/etc/sluice", "/var/lib/sluice", "/usr/"):
            text = text.replace(folder, self.root + folder)
        return text.replace("cmake --install build", f"cmake --install build --prefix {self.root}/usr/local")

    def type(self, script):
        """One block, in the folder that the one before has gone to."""
        place = os.path.join(self.root, "place")
        done = doc_page.run(self.here(script) + f"\npwd > {place}", self.folder, self.environment)
        self.assertEqual(0, done.returncode, f"{script}{done.stdout}{done.stderr}")
        with open(place, encoding="utf-8") as file:
            self.folder = file.read().strip()
        return done.stdout

    def test_what_it_says_works(self):
        began = time.monotonic()
        scripts = []
        for block in doc_page.blocks(PAGE):
            named = doc_page.file_named_before(block)
            if named:
                with open(os.path.join(self.folder, self.here(named)), "w", encoding="utf-8") as file:
                    file.write(self.here(block.content))
                continue
            self.assertEqual("sh", block.language, f"line {block.line}: every block is a file or commands")
            scripts.append(block.content)
            if "apt-get" not in block.content and not block.content.startswith("sudo cat"):
                shown = self.type(doc_page.typed(block))
                if "until-empty" in block.content:
                    self.assertIn(" hello\n", shown)
                if "sluice dev" in block.content:
                    self.assertIn("-- done 1, retried 0, dead 0\n", shown)
        self.assertEqual(7, len(scripts))
        support.until("the message is in the journal", lambda: "in production" in self.type("touch /var/lib/sluice/journal.txt\n" + scripts[-1]))
        print(f"from an empty folder to a message in production, compilers included: {time.monotonic() - began:.0f} s", file=sys.stderr)
        self.pipeline()

    def pipeline(self):
        """The pipeline file, on what is built: its commands but for the installation."""
        with open(os.path.join(self.folder, ".github/workflows/plugin.yml"), encoding="utf-8") as file:
            steps = yaml.safe_load(file)["jobs"]["test"]["steps"]
        commands = {step["name"]: step["run"] for step in steps if "run" in step}
        self.assertEqual(["Install the compiler and Sluice", "Build", "Test", "Try to break it"], list(commands))
        self.type(commands["Build"])
        self.type(commands["Test"])
        self.type(commands["Try to break it"])


if __name__ == "__main__":
    unittest.main()
