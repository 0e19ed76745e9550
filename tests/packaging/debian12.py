#!/usr/bin/env python3
"""The Debian packages in a Debian 12 that has nothing else: installed, run by systemd, upgraded under load, purged.

    ./dev package check

Needs root, debootstrap, systemd-nspawn and the network: the root is made once, in build/debian12, and every run works on a
layer above it. Takes a few minutes; no part of ./dev test.
"""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

BUILD = sys.argv[1] if len(sys.argv) > 1 else "build/package"
os.environ["SLUICE_BUILD_DIR"] = os.path.abspath(BUILD)
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import doc_page
BASE = os.path.abspath(os.path.join("build", "debian12"))
# Packages that the machine fetched, for the next run.
CACHE = os.path.abspath(os.path.join("build", "debian12-packages"))
NAMES = ("sluice", "sluice-plugins", "sluice-sdk", "libsluice-client1", "libsluice-client-dev")
PATIENCE = 120
JOB = """[job]
queue = "orders"
handler = "exec"
concurrency = 4
[job.options]
command = ["cat >> worked; echo >> worked"]
shell = true
"""


def say(text):
    print("==> " + text, flush=True)


def run(*words, **options):
    return subprocess.run(words, capture_output=True, text=True, check=False, **options)


def succeeds(*words, **options):
    done = run(*words, **options)
    if done.returncode != 0:
        raise SystemExit(f"failed: {words}\n{done.stdout}{done.stderr}")
    return done.stdout


def until(what, condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise SystemExit("never happened: " + what)
        time.sleep(0.1)


def holds(condition, what):
    if not condition:
        raise SystemExit("wrong: " + what)


def make_base():
    if os.path.exists(os.path.join(BASE, "usr", "sbin", "adduser")):
        return
    say("making a root of Debian 12 in " + BASE)
    shutil.rmtree(BASE, ignore_errors=True)
    succeeds("debootstrap", "--variant=minbase", "--include=systemd-sysv,dbus,adduser,ca-certificates", "bookworm", BASE)
    for folder in ("etc/apt/apt.conf.d", "etc/apt/preferences.d"):
        if os.path.isdir("/" + folder):
            shutil.copytree("/" + folder, os.path.join(BASE, folder), dirs_exist_ok=True)


class Machine:
    """A booted one, on a layer of its own."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="sluice-debian-", dir=os.path.dirname(BASE))
        for name in ("upper", "work", "root"):
            os.mkdir(os.path.join(self.folder, name))
        self.root = os.path.join(self.folder, "root")
        layers = ",".join(f"{name}={os.path.join(self.folder, part)}" for name, part in (("upperdir", "upper"), ("workdir", "work")))
        succeeds("mount", "-t", "overlay", "overlay", "-o", f"lowerdir={BASE},{layers}", self.root)
        with open(os.path.join(self.folder, "console"), "w", encoding="utf-8") as console:
            self.process = subprocess.Popen(["systemd-nspawn", "--register=no", "--keep-unit", "-q", "-D", self.root, "--boot",
                                             "--console=pipe", "--resolv-conf=copy-host", f"--bind={CACHE}:/var/cache/apt/archives"], stdin=subprocess.DEVNULL, stdout=console,
                                            stderr=console)
        until("it boots", lambda: self.init() and "running" in self.shell("systemctl is-system-running", check=False))

    def init(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="utf-8") as file:
            children = file.read().split()
        return int(children[0]) if children else 0

    def enter(self, script):
        return ["nsenter", f"--target={self.init()}", "--mount", "--pid", "--ipc", "--uts", "--cgroup", "--root",
                "env", "-i", "PATH=/usr/sbin:/usr/bin", "DEBIAN_FRONTEND=noninteractive", "HOME=/root", "bash", "-c", "cd /\n" + script]

    def shell(self, script, check=True, data=None):
        done = run(*self.enter(script), input=data)
        if check and done.returncode != 0:
            raise SystemExit(f"failed: {script}\n{done.stdout}{done.stderr}\n" +
                             run(*self.enter("journalctl -u 'sluice*' --no-pager | tail -n 40")).stdout)
        return done.stdout + ("" if check else done.stderr)

    def write(self, path, text):
        self.shell(f"mkdir -p $(dirname {path}); cat > {path}", data=text)

    def stop(self):
        self.process.kill()
        self.process.wait()
        run("umount", self.root)
        shutil.rmtree(self.folder, ignore_errors=True)


def packages():
    """Those of the build, and the same again as the next revision, to upgrade to."""
    folder = os.path.abspath(os.path.join(BUILD, "packages"))
    with open(os.path.join(BUILD, "CPackConfig.cmake"), encoding="utf-8") as file:
        version = re.search(r'CPACK_PACKAGE_VERSION "(.*?)"', file.read()).group(1)
    for revision in ("1", "2"):
        say(f"making the packages, revision {revision}")
        succeeds("cpack", "-B", os.path.join(folder, revision), "-D", f"CPACK_DEBIAN_PACKAGE_RELEASE={revision}",
                 "-D", f"CPACK_DEBIAN_CLIENT_PACKAGE_DEPENDS=libsluice-client1 (= {version}-{revision})", cwd=BUILD)
    return {revision: sorted(glob.glob(os.path.join(folder, revision, "*.deb"))) for revision in ("1", "2")}


def lint(files):
    found = run("lintian", "--allow-root", "--fail-on", "error", *files)
    holds(found.returncode == 0, "lintian:\n" + found.stdout)
    say(f"lintian: no error, {len(re.findall(r'^W:', found.stdout, re.M))} warnings")


def run_foreign_plugins():
    """The host of the packages, which gcc made, with plugins of another compiler, standard library and ABI of strings."""
    sluice = os.path.join(BUILD, "bin", "sluice")
    holds("clang" not in succeeds("readelf", "-p", ".comment", sluice), "the host is gcc's")
    started, worked = "made for foreign, with 1500000000", ["t from a thread", "colour=red"]
    with tempfile.TemporaryDirectory() as folder:
        for compiler in (["clang++"], ["clang++", "-stdlib=libc++"], ["g++", "-D_GLIBCXX_USE_CXX11_ABI=0"]):
            plugin = os.path.join(folder, f"{len(os.listdir(folder))}.so")
            succeeds(*compiler, "-std=c++20", "-shared", "-fPIC", "-fvisibility=hidden", "-Isdk/include", "tests/fixtures/plugins/foreign.cpp", "-o", plugin)
            for body, outcome, reason, logged in (("order", "done", "", worked), ("reject", "reject", "rejected: t", worked),
                                                  ("throw", "fault", "cannot work on throw, attempt 1", []),
                                                  ("throw int", "fault", "threw something that is not a std::exception", [])):
                shown = run(sluice, "try", "foreign", "--plugin", plugin, "--option", "text=t", "--attr", "colour=red", "--data", body)
                said = json.loads(shown.stdout)
                lines = [line["text"] for line in said["log"] if line["level"] == "info"]
                staged = [message["body"] for message in (said["transaction"] or {"messages": []})["messages"]]
                holds([outcome, reason, [started] + logged, ["order two"] if outcome == "done" else []] ==
                      [said["outcome"], said["reason"], lines, staged], f"a plugin by {compiler} in gcc's host: {shown}")
            say("a plugin by " + " ".join(compiler) + " runs in gcc's host")


def install(machine):
    before = machine.shell("find /etc /usr /var/lib -xdev | sort")
    machine.shell("apt-get update -qq && apt-get install -y -qq --no-install-recommends /debs/1/sluice_*.deb /debs/1/sluice-plugins_*.deb"
                  " /debs/1/sluice-sdk_*.deb /debs/1/libsluice-client*.deb")
    holds(machine.shell("stat -c '%U %a' /var/lib/sluice") == "sluice 700\n", "the state folder")
    holds("inactive" in machine.shell("systemctl is-active sluice", check=False), "without a job it does not run")
    holds("0 loaded units" in machine.shell("systemctl --failed --no-pager"), "nothing has failed")
    holds("enabled" in machine.shell("systemctl is-enabled sluice"), "it starts with the machine")
    holds("handler" in machine.shell("sluice plugins"), "its plugins")
    say("installed")
    return before


def serve(machine):
    machine.write("/etc/sluice/jobs.d/orders.toml", JOB)
    machine.shell("systemctl start sluice")
    holds("active" == machine.shell("systemctl is-active sluice").strip(), "it runs")
    machine.shell("echo '\"first\"' | runuser -u sluice -- sluice send --queue orders -")
    until("the message is worked off", lambda: "first" in machine.shell("cat /var/lib/sluice/worked", check=False))
    exposure = machine.shell("systemd-analyze security sluice --no-pager", check=False).strip().splitlines()[-1]
    say("runs; " + exposure.strip())
    machine.write("/etc/sluice/jobs.d/bad.toml", "[job]\nqueu = \"orders\"\n")
    holds("failed" in machine.shell("systemctl reload sluice", check=False), "a bad file is a failed reload")
    holds("queu" in machine.shell("journalctl -u sluice --no-pager"), "the log says why")
    machine.shell("rm /etc/sluice/jobs.d/bad.toml; systemctl reload sluice")
    machine.write("/etc/sluice/second/host.toml", '[host]\nplugin_dirs = ["/usr/lib/sluice/plugins"]\nstate_dir = "/var/lib/sluice/second"\n'
                  '[store]\npath = "/var/lib/sluice/second/sluice.db"\n')
    machine.write("/etc/sluice/second/jobs.d/orders.toml", JOB)
    machine.shell("systemctl start sluice@second")
    machine.shell("echo '\"second\"' | runuser -u sluice -- sluice send --config /etc/sluice/second/host.toml --queue orders -")
    until("the second host works", lambda: "second" in machine.shell("cat /var/lib/sluice/second/worked", check=False))
    say("reloads, and two hosts run beside one another")


def upgrade_under_load(machine):
    sender = subprocess.Popen(machine.enter(
        "cd /tmp; for batch in $(seq 60); do for n in $(seq 50); do echo \"{\\\"m\\\":\\\"$batch-$n\\\"}\"; done |"
        " runuser -u sluice -- sluice send --queue orders - >> /tmp/ids || echo failed >> /tmp/ids; done"),
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    worked = "grep -o '\"m\":\"[0-9-]*\"' /var/lib/sluice/worked | sort"
    until("it is busy", lambda: machine.shell(f"{worked} | wc -l", check=False).strip() not in ("", "0"))
    pid = machine.shell("systemctl show -p MainPID --value sluice").strip()
    for files in ("sluice_*.deb", "sluice-plugins_*.deb"):
        machine.shell(f"dpkg -i /debs/2/{files}")
        holds(sender.poll() is None, "the sender was still at it: raise the load")
    holds(machine.shell("systemctl show -p MainPID --value sluice").strip() not in (pid, "0"), "a new process runs")
    errors = sender.communicate()[1]
    ids = machine.shell("sort -u /tmp/ids").split()
    holds(len(ids) == 3000 and "failed" not in ids, f"every message was sent: {len(ids)}\n{errors}")
    until("all is worked off", lambda: len(set(machine.shell(worked).split())) == 3000)
    twice = len(machine.shell(worked).split()) - 3000
    journal = machine.shell("journalctl -u sluice --no-pager -o cat")
    ends = [line for line in journal.splitlines() if "stranded" in line]
    holds(len(ends) >= 1 and all(re.search(r"\b0 stranded|stranded[ =:]+0", line) for line in ends), "drained:\n" + "\n".join(ends))
    say(f"upgraded under load: 3,000 messages sent and worked off meanwhile, {twice} of them twice, {len(ends)} drains, none stranded")


def purge(machine, before):
    machine.shell("apt-get remove -y -qq sluice sluice-plugins")
    holds("inactive" in machine.shell("systemctl is-active sluice", check=False), "stopped")
    holds(machine.shell("ls /etc/sluice/host.toml /var/lib/sluice/sluice.db").count("\n") == 2, "a removal keeps configuration and queues")
    said = machine.shell("apt-get purge -y -qq " + " ".join(NAMES) + " 2>&1")
    holds("not empty" not in said and "warning" not in said.lower(), said)
    # What the compilers left is not ours.
    left = set(machine.shell("find /etc /usr /var/lib -xdev | sort").split("\n")) - set(before.split("\n"))
    ours = [path for path in left if "sluice" in path and not path.startswith("/var/lib/apt/")]
    holds(not ours, f"left behind: {ours}")
    holds("sluice" not in machine.shell("getent passwd; getent group; systemctl list-unit-files --no-pager"), "user and units")
    say("purged: nothing of it is left")


def follow_first_plugin(machine):
    """docs/start/first-plugin.md as its reader types it, in the folder with the packages that are installed by now."""
    folder, shown = "/debs/2", ""
    machine.shell("apt-get install -y -qq --no-install-recommends sudo")
    begin = time.monotonic()
    for block in doc_page.blocks("docs/start/first-plugin.md"):
        named = doc_page.file_named_before(block)
        if named:
            machine.write(os.path.join(folder, named), block.content)
        elif block.content.startswith("sudo cat"):
            until("the message is in the journal", lambda: "in production" in machine.shell(block.content, check=False))
        else:
            shown += machine.shell(f"set -euo pipefail; cd {folder}\n{doc_page.typed(block)}\npwd > /root/folder")
            folder = machine.shell("cat /root/folder").strip()
    seconds = time.monotonic() - begin
    holds(" hello\n" in shown, "the message of the project's own host file:\n" + shown)
    holds("-- done 1, retried 0, dead 0\n" in shown, "the message that `sluice dev` was given:\n" + shown)
    machine.shell("rm -rf /debs/2/journal /root/folder /etc/sluice/jobs.d/journal.toml /etc/sluice/jobs.d/receipts.toml /usr/local/lib/sluice/plugins/*")
    say(f"followed docs/start/first-plugin.md; its commands took {seconds:.0f} s of the ten minutes that it promises")


def develop(machine):
    machine.shell("apt-get install -y -qq --no-install-recommends g++ cmake make pkg-config")
    follow_first_plugin(machine)
    machine.shell("cd /root && g++ -std=c++20 /usr/share/sluice-client/example/orders.cpp $(pkg-config --cflags --libs sluice-client) -o orders")
    holds("99 ready" in machine.shell("/root/orders /root/orders.db"), "a producer built with the library's package")
    machine.shell("rm -rf /root/orders*")
    say("built a plugin and a producer with the packages")


def main():
    if os.geteuid() != 0:
        raise SystemExit("needs root: it makes and boots a Debian 12")
    os.makedirs(os.path.join(CACHE, "partial"), exist_ok=True)
    debs = packages()
    lint(debs["1"])
    run_foreign_plugins()
    make_base()
    machine = Machine()
    try:
        for revision, files in debs.items():
            os.makedirs(os.path.join(machine.root, "debs", revision))
            for file in files:
                shutil.copy(file, os.path.join(machine.root, "debs", revision))
        before = install(machine)
        serve(machine)
        upgrade_under_load(machine)
        develop(machine)
        purge(machine, before)
    finally:
        machine.stop()


if __name__ == "__main__":
    main()
