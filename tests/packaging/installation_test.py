#!/usr/bin/env python3
"""`cmake --install`: programs, plugins, manual, completions, units, example configuration; and that they work there."""

import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import support

CMAKE = os.environ.get("SLUICE_CMAKE", "cmake")
with open(os.path.join(support.BUILD, "CMakeCache.txt"), encoding="utf-8") as cache:
    SANITIZED = bool(re.search(r"^SLUICE_SANITIZE:\w+=.", cache.read(), re.M))


def run(*words, **options):
    return subprocess.run(words, capture_output=True, text=True, timeout=support.PATIENCE * 5, check=False, **options)


def install(prefix, *components, staged=""):
    """Installs the components, or everything, below a prefix; `staged` is where packagers have the root."""
    for component in components or (None,):
        words = [CMAKE, "--install", support.BUILD, "--prefix", prefix]
        done = run(*words, *(["--component", component] if component else []),
                   env=dict(os.environ, **({"DESTDIR": staged} if staged else {})))
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr)


class Installed(unittest.TestCase):
    components = ()

    @classmethod
    def setUpClass(cls):
        cls.prefix = tempfile.mkdtemp(prefix="sluice-prefix-")
        cls.addClassCleanup(shutil.rmtree, cls.prefix, ignore_errors=True)
        install(cls.prefix, *cls.components)
        cls.environment = {"PATH": f"{cls.prefix}/bin:{os.environ['PATH']}", "HOME": cls.prefix}

    def path(self, *parts):
        return os.path.join(self.prefix, *parts)

    def read(self, *parts):
        with open(self.path(*parts), encoding="utf-8") as file:
            return file.read()

    def succeeds(self, *words, **options):
        done = run(*words, env=dict(self.environment, **options.pop("environment", {})), **options)
        self.assertEqual(0, done.returncode, f"{words}\n{done.stdout}{done.stderr}")
        return done.stdout


class Installation(Installed):
    def test_programs(self):
        self.assertRegex(self.succeeds("sluice", "version"), r"^sluice \d")
        self.assertEqual("sluice", os.readlink(self.path("bin", "dynamomq")))
        self.assertIn("dynamomq", self.succeeds("dynamomq", "--help"))

    def test_plugins_that_are_no_examples(self):
        names = {os.path.basename(file) for file in glob.glob(self.path("lib", "sluice", "plugins", "*"))}
        self.assertEqual({"log.so", "verify-file.so", "exec.so", "webhook.so", "nats.so", "sns.so", "queue.so"}, names)

    def test_a_host_file_need_not_name_the_installed_plugins(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "jobs.d"))
            for name, text in {"host.toml": "", "jobs.d/run.toml": '[job]\nqueue = "a"\nhandler = "exec"\n[job.options]\ncommand = ["true"]\n',
                               "jobs.d/greet.toml": '[job]\nqueue = "b"\nhandler = "log"\n'}.items():
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(text)
            done = run("sluice", "check", env=self.environment, cwd=folder)
            self.assertEqual((0, "host.toml: good\n"), (done.returncode, done.stderr), "nor is the default folder missed, which is not there")
            started = run("sluice", "run", "--until-empty", "--allow-insecure-files", env=self.environment, cwd=folder)
            self.assertRegex(started.stderr, r"running .* plugins=2\n", "those alone that jobs name")
            # One's own handler of that name comes first.
            os.mkdir(os.path.join(folder, "plugins"))
            shutil.copy(self.path("lib", "sluice", "plugins", "log.so"), os.path.join(folder, "plugins", "mine.so"))
            done = run("sluice", "check", env=self.environment, cwd=folder)
            self.assertEqual((0, "host.toml: good\n"), (done.returncode, done.stderr))
            offered = run("sluice", "plugins", env=self.environment, cwd=folder).stdout
            self.assertIn("plugins/mine.so", offered)
            self.assertIn(self.path("lib", "sluice", "plugins", "exec.so"), offered)

    def test_the_default_folder_that_comes_later_is_taken_up_by_a_reload(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "jobs.d"))
            for name, text in {"host.toml": "", "jobs.d/first.toml": '[job]\nqueue = "a"\nhandler = "log"\n'}.items():
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(text)
            log = os.path.join(folder, "log")
            with open(log, "wb") as file:
                host = subprocess.Popen(["sluice", "run"], env=self.environment, cwd=folder, stdout=file, stderr=file)
            try:
                def logged():
                    with open(log, encoding="utf-8") as file:
                        return file.read()

                support.until("it runs", lambda: "running" in logged())
                os.mkdir(os.path.join(folder, "plugins"))
                shutil.copy(self.path("lib", "sluice", "plugins", "log.so"), os.path.join(folder, "plugins", "mine.so"))
                with open(os.path.join(folder, "jobs.d", "greet.toml"), "w", encoding="utf-8") as file:
                    file.write('[job]\nqueue = "b"\nhandler = "log"\n')
                host.send_signal(signal.SIGHUP)
                support.until("it is reloaded", lambda: "greet" in logged())
                self.assertNotIn("plugin_dirs", logged(), "nobody has changed that")
            finally:
                host.terminate()
                host.wait(support.PATIENCE)

    def test_a_manual_page_for_each_command(self):
        commands = re.findall(r"^  ([a-z][a-z-]*(?: [a-z]+)?)  +\S", self.succeeds("sluice", "help").partition("\n`sluice help")[0], re.M)
        self.assertIn("table create", commands)
        pages = {os.path.basename(page) for page in glob.glob(self.path("share", "man", "man1", "*"))}
        self.assertEqual({f"sluice-{name.replace(' ', '-')}.1" for name in commands} | {"sluice.1", "dynamomq.1"}, pages)

    def test_manual_pages_say_what_help_says(self):
        page = self.read("share", "man", "man1", "sluice-send.1").replace("\\-", "-")
        for option in re.findall(r"^  (--[a-z-]+)", self.succeeds("sluice", "help", "send"), re.M):
            self.assertIn(option, page)

    def test_manual_pages_are_sound(self):
        if not shutil.which("man"):
            self.skipTest("SKIPPED: there is no man here; the package man-db has it")
        for page in sorted(glob.glob(self.path("share", "man", "man1", "*"))):
            shown = run("man", "--warnings", "-l", page, env=dict(self.environment, LC_ALL="C.UTF-8", MANWIDTH="100"))
            self.assertEqual((0, ""), (shown.returncode, shown.stderr), page)
            self.assertIn("NAME", shown.stdout)

    def test_completions(self):
        bash = self.path("share", "bash-completion", "completions")
        script = 'source "$0/sluice"; COMP_WORDS=(sluice ver); COMP_CWORD=1; _sluice_complete; echo "${COMPREPLY[@]}"'
        self.assertEqual("version", self.succeeds("bash", "-c", script, bash).strip())
        for file in ("bash-completion/completions/dynamomq", "zsh/site-functions/_sluice", "zsh/site-functions/_dynamomq",
                     "fish/vendor_completions.d/sluice.fish", "fish/vendor_completions.d/dynamomq.fish"):
            program = "dynamomq" if "dynamomq" in file else "sluice"
            self.assertIn(program + " __complete", self.read("share", *file.split("/")))

    def test_examples_work_where_they_are_copied_to(self):
        for host_file in ("host.toml", "host-dynamodb.toml"):
            with tempfile.TemporaryDirectory() as folder:
                shutil.copytree(self.path("share", "doc", "sluice", "examples"), folder, dirs_exist_ok=True)
                self.succeeds("sluice", "check", "--config", os.path.join(folder, host_file),
                              environment={"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"})

    def test_units(self):
        for unit in ("sluice.service", "sluice@.service"):
            text = self.read("lib", "systemd", "system", unit)
            self.assertIn(f"ExecStart={self.prefix}/bin/sluice run", text)
            self.assertNotIn("@CMAKE", text)
            grace = int(re.search(r"^TimeoutStopSec=(\d+)s$", text, re.M).group(1))
            self.assertGreaterEqual(grace, 25 + 10, "drain_timeout and a margin")

    def test_units_are_understood(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("SKIPPED: there is no systemd-analyze here; the package systemd has it")
        # A home where the sandbox of the unit does not matter: only what the words mean is looked at.
        for unit in ("sluice.service", "sluice@orders.service"):
            template = re.sub("@.*", "@.service", unit)
            with tempfile.TemporaryDirectory() as folder:
                shutil.copy(self.path("lib", "systemd", "system", template), os.path.join(folder, unit))
                done = run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", os.path.join(folder, unit))
            ours = [line for line in done.stderr.splitlines() if "sluice" in line]
            self.assertEqual([], ours)

    def test_packagers_may_stage_it(self):
        with tempfile.TemporaryDirectory() as staged:
            install("/opt/sluice", staged=staged)
            with open(os.path.join(staged, "opt/sluice/lib/systemd/system/sluice.service"), encoding="utf-8") as file:
                self.assertIn("ExecStart=/opt/sluice/bin/sluice run", file.read())
            with open(os.path.join(staged, "opt/sluice/share/doc/sluice/examples/host.toml"), encoding="utf-8") as file:
                self.assertIn("/opt/sluice/lib/sluice/plugins", file.read())


class PkgConfig(Installed):
    """A plugin and a producer built without CMake."""

    components = ("sdk", "client", "client_library", "host")

    def flags(self, package):
        places = ":".join(glob.glob(self.path("**", "pkgconfig"), recursive=True))
        return self.succeeds("pkg-config", "--cflags", "--libs", package, environment={"PKG_CONFIG_PATH": places}).split()

    def test_a_plugin(self):
        os.mkdir(self.path("plugins"))
        self.succeeds("sluice", "new", "plugin", "shout", cwd=self.prefix)
        self.succeeds("g++", "-std=c++20", "-shared", "-fPIC", "-fvisibility=hidden", *self.flags("sluice-sdk"),
                      self.path("shout", "shout.cpp"), "-o", self.path("plugins", "shout.so"))
        exported = self.succeeds("nm", "-D", "--defined-only", self.path("plugins", "shout.so")).split()
        self.assertIn("sluice_plugin_v1", "".join(exported))
        with open(self.path("host.toml"), "w", encoding="utf-8") as file:
            file.write("")
        self.assertIn("shout", self.succeeds("sluice", "plugins", cwd=self.prefix))

    def test_a_producer(self):
        if SANITIZED:
            self.skipTest("SKIPPED: a library with clang's sanitizer takes clang's programs only")
        example = self.path("share", "sluice-client", "example", "orders.cpp")
        self.succeeds("g++", "-std=c++20", example, *self.flags("sluice-client"), "-o", self.path("orders"))
        libraries = os.path.dirname(glob.glob(self.path("lib", "**", "libsluice-client.so.1"), recursive=True)[0])
        self.assertIn("100 messages, 99 ready",
                      self.succeeds(self.path("orders"), self.path("orders.db"), environment={"LD_LIBRARY_PATH": libraries}))


if __name__ == "__main__":
    unittest.main()
