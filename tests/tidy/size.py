#!/usr/bin/env python3
"""How large the product is by room, beside the last commit on main: lines, files and types."""

import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import rules  # noqa: E402

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
# A definition: its name is followed by its bases or its body, be it on the same line.
TYPE = re.compile(r"^[ \t]*(?:typedef[ \t]+)?(?:class|struct|union|enum)[ \t]+(?:\[\[\w+\]\][ \t]+)?\w[^;(){}=]*\{", re.M)


def measured(root):
    """By room: lines, files, types. What belongs to no room stands under its folder."""
    tree = rules.Tree(root)
    rooms = rules.rooms(rules.Tree(ROOT))
    sizes = {}
    for path in tree.files(rules.SOURCE_FOLDERS, rules.PRODUCT_SUFFIXES):
        room = rules.room_of(path, rooms) or os.path.dirname(path)
        size = sizes.setdefault(room, [0, 0, 0])
        size[0] += tree.read(path).count("\n")
        size[1] += 1
        size[2] += len(TYPE.findall(tree.code(path)))
    return sizes


def checked_out(commit, folder):
    archive = subprocess.run(["git", "-C", ROOT, "archive", commit, *rules.SOURCE_FOLDERS], check=True, capture_output=True)
    subprocess.run(["tar", "-x", "-C", folder], check=True, input=archive.stdout)


def known(commit):
    return subprocess.run(["git", "-C", ROOT, "rev-parse", "--verify", "-q", commit + "^{commit}"], check=False,
                          capture_output=True, text=True).stdout.strip()


def base_commit(words):
    if words:
        commit = known(words[0])
        if not commit:
            sys.exit(f"size: no commit is named '{words[0]}'; say one that `git log` shows")
        return commit
    return next((commit for commit in map(known, ("origin/main", "main", "HEAD")) if commit), "")


def row(room, now, before, limit):
    change = now[0] - before[0]
    return (f"{room:<28}{now[0]:>8}{'' if not change else f'{change:+}':>8}{limit:>9}"
            f"{now[1]:>7}{now[2]:>7}")


def main(words):
    if len(words) > 1:
        sys.exit("usage: ./dev size [COMMIT]")
    commit = base_commit(words)
    now = measured(ROOT)
    with tempfile.TemporaryDirectory() as folder:
        before = now
        if commit:
            checked_out(commit, folder)
            before = measured(folder)
    limits = rules.rooms(rules.Tree(ROOT))
    print(f"{'room':<28}{'lines':>8}{'change':>8}{'limit':>9}{'files':>7}{'types':>7}")
    none = [0, 0, 0]
    for room in sorted(now.keys() | before.keys()):
        print(row(room, now.get(room, none), before.get(room, none), limits.get(room, "-")))
    total = [sum(size[i] for size in now.values()) for i in range(3)]
    print(row("all", total, [sum(size[0] for size in before.values())], sum(limits.values())))
    if commit:
        print(f"change: since {commit[:7]}")


if __name__ == "__main__":
    main(sys.argv[1:])
