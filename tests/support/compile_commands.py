"""What a build knows of its sources. CMake compiles several of them at a time, from a file that only includes them."""

import json
import os
import re

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))


def included_by(file):
    """The sources of ours that such a file includes; none for any other."""
    if os.path.basename(os.path.dirname(file)) != "Unity":
        return []
    with open(file, encoding="utf-8") as text:
        return [os.path.relpath(path, ROOT) for path in re.findall(r'^#include "(.*)"$', text.read(), re.M)]


def compiled_sources(build):
    """Pairs of a source's path from the root, and the entry of compile_commands.json by which it is compiled."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        entries = json.load(file)
    for entry in entries:
        file = os.path.join(entry["directory"], entry["file"])
        for source in included_by(file) or [os.path.relpath(file, ROOT)]:
            yield source, entry
