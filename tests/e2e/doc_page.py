"""A page of the documentation as its readers follow it: its blocks, run in order and compared with what the page shows."""

import os
import re
import signal
import subprocess
import threading

import support

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
CMAKE = os.environ.get("SLUICE_CMAKE", "cmake")
# Until Ctrl-C: these go on by themselves for ever.
ENDLESS = re.compile(r"^sluice (tail\b|stats\b.*--watch)")


class Block:
    def __init__(self, language, content, line, before):
        self.language, self.content, self.line, self.before = language, content, line, before


def install(folder, *components):
    """This build, or some components of it, below the folder; the environment of whoever has installed it there."""
    prefix = os.path.join(folder, "prefix")
    for chosen in [["--component", component] for component in components] or [[]]:
        done = subprocess.run([CMAKE, "--install", support.BUILD, "--prefix", prefix, *chosen], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
    return {"PATH": f"{prefix}/bin:{os.environ['PATH']}", "HOME": folder, "CMAKE_PREFIX_PATH": prefix,
            "CPLUS_INCLUDE_PATH": os.path.join(prefix, "include")}


def read(name):
    with open(os.path.join(support.SOURCE, name), encoding="utf-8") as file:
        return file.read()


def blocks(name):
    """The page's blocks; `before` is the line of text that introduces each."""
    text = read(name)
    return [Block(match.group(1), match.group(2), text.count("\n", 0, match.start()) + 1,
                  ([""] + text[:match.start()].strip().split("\n"))[-1]) for match in BLOCK.finditer(text)]


def typed(block):
    """The block's commands; `sluice dev`, which runs messages until its input ends, is given one."""
    return block.content.replace("sluice dev", "echo typed | sluice dev")


def file_named_before(block):
    """The file that a block is, where the line before it is its name."""
    named = re.match(r"^`([\w./-]+\.(?:cpp|txt|toml))`", block.before)
    return named.group(1) if named else None


def write_file(folder, name, content):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(content)


def write_files(page, folder):
    """Writes the page's files below the folder; its blocks of commands, in order. What is `text` is only shown."""
    commands = []
    for block in blocks(page):
        named = file_named_before(block)
        if named:
            write_file(folder, named, block.content)
        elif block.language == "sh":
            commands.append(block.content)
        elif block.language != "text":
            raise AssertionError(f"{page}:{block.line}: every block is a file, commands, or text")
    return commands


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
