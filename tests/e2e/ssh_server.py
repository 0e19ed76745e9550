"""An OpenSSH server of a test's own, with keys of its own, on a free loopback port."""

import getpass
import os
import shutil
import subprocess
import tempfile

from support import free_port, until

SSHD = "/usr/sbin/sshd"


def installed():
    return os.access(SSHD, os.X_OK) and shutil.which("ssh-keygen")


class SshServer:
    """Ended by pid, its folder removed."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="sluice-sshd-")
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", exist_ok=True)  # which only a start by root needs
        for key in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", self.path(key)], check=True)
        self.process = None
        until("sshd listens", self.up)

    def path(self, name):
        return os.path.join(self.folder, name)

    def up(self):
        if self.process is None or self.process.poll() is not None:
            self.port = free_port()
            with open(self.path("config"), "w", encoding="utf-8") as file:
                file.write(f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {self.path('host')}\nPidFile none\n"
                           f"AuthorizedKeysFile {self.path('user.pub')}\nStrictModes no\nUsePAM no\n"
                           "PasswordAuthentication no\nKbdInteractiveAuthentication no\nAllowTcpForwarding yes\n"
                           "PermitRootLogin yes\nLogLevel ERROR\n")
            self.process = subprocess.Popen([SSHD, "-D", "-f", self.path("config"), "-E", self.path("log")])
        scanned = subprocess.run(["ssh-keyscan", "-p", str(self.port), "-t", "ed25519", "127.0.0.1"], capture_output=True,
                                 text=True)
        with open(self.path("known_hosts"), "w", encoding="utf-8") as file:
            file.write(scanned.stdout)
        return "ssh-ed25519" in scanned.stdout

    def section(self, outbox):
        """[outbox.NAME.ssh] of a host file."""
        return (f'[outbox.{outbox}.ssh]\nhost = "127.0.0.1"\nport = {self.port}\nuser = "{getpass.getuser()}"\n'
                f'private_key = "{self.path("user")}"\nknown_hosts = "{self.path("known_hosts")}"\n')

    def stop(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
