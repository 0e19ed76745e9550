"""A program on a pseudo-terminal, driven by what it shows."""

import errno
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

PATIENCE = float(os.environ.get("SLUICE_TEST_PATIENCE", "30"))

CTRL_A, CTRL_C, CTRL_D, CTRL_E, CTRL_R, CTRL_W, CTRL_Z = (
    b"\x01", b"\x03", b"\x04", b"\x05", b"\x12", b"\x17", b"\x1a")
UP, DOWN, RIGHT, LEFT, DELETE = b"\x1b[A", b"\x1b[B", b"\x1b[C", b"\x1b[D", b"\x1b[3~"
STEERING = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|\x1b[=>]|[\r\x07\x08]")


class Terminal:
    """Starts the program; `expect` reads until a text has appeared, and never waits for time to pass."""

    def __init__(self, words, folder, environment, columns=120):
        self.seen = ""
        self.taken = 0
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execve(words[0], words, dict(environment, TERM="xterm"))
        self.resize(columns)

    def resize(self, columns, rows=40):
        fcntl.ioctl(self.descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.descriptor, text if isinstance(text, bytes) else text.encode())

    def enter(self, text=""):
        self.type(text + "\r")

    def _read(self):
        """More of what the program shows; False at its end."""
        try:
            data = os.read(self.descriptor, 65536)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            data = b""
        self.seen += STEERING.sub("", data.decode("utf-8", "replace"))
        return bool(data)

    def expect(self, text):
        """Waits until the text has appeared behind what was expected before; returns what stood between."""
        end = time.monotonic() + PATIENCE
        while True:
            found = self.seen.find(text, self.taken)
            if found >= 0:
                between = self.seen[self.taken:found]
                self.taken = found + len(text)
                return between
            ready, _, _ = select.select([self.descriptor], [], [], max(0, end - time.monotonic()))
            if not ready or not self._read():
                raise AssertionError(f"never appeared: {text!r}; shown since then: {self.seen[self.taken:]!r}")

    def is_cooked(self):
        """Whether the terminal collects lines and echoes by itself, as it does outside of line editing."""
        flags = termios.tcgetattr(self.descriptor)[3]
        return bool(flags & termios.ICANON and flags & termios.ECHO)

    def expect_prompt(self, text):
        """Waits for a prompt, and until the line behind it can be edited; the same as `expect` otherwise."""
        between = self.expect(text)
        self.until(lambda: not self.is_cooked())
        return between

    def until(self, condition):
        """Reads what is shown until the condition holds."""
        end = time.monotonic() + PATIENCE
        while not condition():
            ready, _, _ = select.select([self.descriptor], [], [], 0.01)
            if time.monotonic() > end or (ready and not self._read()):
                raise AssertionError(f"never happened; shown: {self.seen[self.taken:]!r}")

    def shows_more(self, seconds):
        """Reads for so long; False when that was the end."""
        ready, _, _ = select.select([self.descriptor], [], [], seconds)
        return not ready or self._read()

    def signal(self, number):
        os.kill(self.pid, number)

    def finish(self):
        """Reads to the end; the exit code, or minus the signal."""
        end = time.monotonic() + PATIENCE
        while True:
            ready, _, _ = select.select([self.descriptor], [], [], max(0, end - time.monotonic()))
            if not ready:
                os.kill(self.pid, signal.SIGKILL)
                raise AssertionError(f"does not end; shown: {self.seen[self.taken:]!r}")
            if not self._read():
                break
        _, status = os.waitpid(self.pid, 0)
        os.close(self.descriptor)
        self.pid = None
        return os.waitstatus_to_exitcode(status)

    def end(self):
        """For a test's clean-up."""
        if self.pid is not None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            os.close(self.descriptor)
            self.pid = None
