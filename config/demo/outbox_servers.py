"""PostgreSQL and NATS for the outbox's demonstration, in a folder of their own, on loopback only."""

import glob
import os
import pwd
import shutil
import socket
import subprocess
import time


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for_port(port, process, name):
    for _ in range(300):
        if process is not None and process.poll() is not None:
            raise SystemExit(f"outbox: {name} has ended by itself; see its log")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"outbox: {name} does not answer on port {port}")


class Postgres:
    """A cluster that nobody else uses. It does not run as root, so that root gives it to the distribution's user."""

    def __init__(self, folder):
        programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
        if not programs:
            raise SystemExit("outbox: there is no PostgreSQL server here; install the package postgresql")
        self.bin = programs[-1]
        self.folder = os.path.join(folder, "postgresql")
        os.makedirs(self.folder, exist_ok=True)
        self.user = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
        self.port = free_port()
        if os.geteuid() == 0:
            shutil.chown(self.folder, self.user)
        self.run("initdb", "-D", os.path.join(self.folder, "data"), "-U", "shop", "-A", "trust", "-E", "UTF8")
        self.log = open(os.path.join(folder, "postgresql.log"), "wb")
        self.process = subprocess.Popen(
            self.words("postgres", "-D", os.path.join(self.folder, "data"), "-p", str(self.port), "-k", self.folder,
                       "-c", "listen_addresses=127.0.0.1"), stdout=self.log, stderr=self.log, cwd="/")
        wait_for_port(self.port, self.process, "PostgreSQL")
        for _ in range(100):
            if subprocess.run(self.psql("-c", "SELECT 1"), capture_output=True, check=False).returncode == 0:
                break
            time.sleep(0.1)
        self.sql("CREATE DATABASE shop", database="postgres")

    @property
    def url(self):
        return f"postgres://shop@127.0.0.1:{self.port}/shop"

    def words(self, program, *arguments):
        command = [os.path.join(self.bin, program), *arguments]
        return ["setpriv", "--reuid", self.user, "--regid", self.user, "--clear-groups", *command] \
            if os.geteuid() == 0 else command

    def run(self, *words):
        done = subprocess.run(self.words(*words), capture_output=True, text=True, cwd="/", check=False)
        if done.returncode != 0:
            raise SystemExit(f"outbox: {words[0]} failed: {done.stderr.strip() or done.stdout.strip()}")

    def psql(self, *arguments, database="postgres"):
        return [os.path.join(self.bin, "psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p",
                str(self.port), "-U", "shop", "-d", database, *arguments]

    def sql(self, text, database="shop"):
        done = subprocess.run(self.psql("-At", database=database), input=text, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"outbox: PostgreSQL says {done.stderr.strip()}")
        return done.stdout.strip()

    def writer(self):
        """A session that takes SQL on its standard input."""
        return subprocess.Popen(self.psql(database="shop"), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Nats:
    def __init__(self, folder):
        program = shutil.which("nats-server") or "/usr/sbin/nats-server"
        if not os.path.exists(program):
            raise SystemExit("outbox: there is no NATS server here; install the package nats-server")
        self.port = free_port()
        self.log = open(os.path.join(folder, "nats.log"), "wb")
        self.process = subprocess.Popen([program, "-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd",
                                         os.path.join(folder, "nats")], stdout=self.log, stderr=self.log)
        wait_for_port(self.port, self.process, "the NATS server")

    def stop(self):
        self.process.terminate()
        self.process.wait()
