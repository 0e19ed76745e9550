"""A page of the documentation as its readers follow it: its blocks, run in order and compared with what the page shows."""

import os
import re
import signal
import subprocess
import threading

import support

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
# Until Ctrl-C: these go on by themselves for ever.
ENDLESS = re.compile(r"^sluice (tail\b|stats\b.*--watch)")


class Block:
    def __init__(self, language, content, line, before):
        self.language, self.content, self.line, self.before = language, content, line, before


def read(name):
    with open(os.path.join(support.SOURCE, name), encoding="utf-8") as file:
        return file.read()


def blocks(name):
    """The page's blocks; `before` is the line of text that introduces each."""
    text = read(name)
    return [Block(match.group(1), match.group(2), text.count("\n", 0, match.start()) + 1,
                  ([""] + text[:match.start()].strip().split("\n"))[-1]) for match in BLOCK.finditer(text)]


def pattern(expected):
    """What a block shows. A line that is only "…" stands for any lines, also none; within a line for any characters."""
    parts = []
    for line in expected.splitlines():
        if line.strip() == "…":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(".*?".join(re.escape(piece) for piece in line.split("…")) + r"\n")
    return re.compile("".join(parts))


def run(script, folder, environment):
    """A whole block in one shell."""
    return subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=support.PATIENCE * 5, check=False)


def run_until_it_shows_something(command, folder, environment, happen):
    """A command that ends by Ctrl-C only: as a reader, after its first line. `happen` makes something to show."""
    process = subprocess.Popen(["bash", "-c", "exec " + command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    first = []
    reader = threading.Thread(target=lambda: first.append(process.stdout.readline()))
    reader.start()

    def shown():
        happen()
        return first
    try:
        support.until(command + " shows something", shown)
    finally:
        process.send_signal(signal.SIGINT)
        reader.join()
        rest = process.communicate()[0]
    return subprocess.CompletedProcess(command, process.returncode, first[0] + rest, "")
