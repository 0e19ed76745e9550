#!/usr/bin/env python3
"""The README as a new user follows it: its files written, its commands run, its links there."""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import doc_page
import support


class Readme(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="sluice-readme-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.work = os.path.join(self.folder, "work")
        os.mkdir(self.work)
        self.environment = doc_page.install(self.folder)

    def test_its_handler_works(self):
        shown, ran = "", []
        for block in doc_page.blocks("README.md"):
            named = doc_page.file_named_before(block)
            if named:
                doc_page.write_file(self.work, named, block.content)
            elif block.language == "sh":
                done = doc_page.run(block.content, self.work, self.environment)
                self.assertEqual(0, done.returncode, f"line {block.line}:\n{block.content}{done.stdout}{done.stderr}")
                ran.append(block.content)
                shown += done.stdout + done.stderr
        self.assertEqual(1, len(ran))
        self.assertIn("hello, world", shown)

    def test_it_is_read_in_two_minutes(self):
        text = doc_page.read("README.md")
        self.assertLessEqual(text.count("\n"), 90)
        self.assertEqual(2, len(re.findall(r"!\[", text)))

    def test_its_commands_exist(self):
        commands = set(re.findall(r"`sluice ([a-z][a-z-]*)", doc_page.read("README.md")))
        known = subprocess.run([support.SLUICE, "help"], capture_output=True, text=True, check=False).stdout
        for command in commands - {"help"}:
            self.assertRegex(known, rf"(?m)^  {command}\b")


def anchors(file):
    """What the headings of a page are called in links."""
    heads = re.findall(r"(?m)^#+ (.*)$", doc_page.BLOCK.sub("", doc_page.read(os.path.relpath(file, support.SOURCE))))
    return {re.sub(r"[^\w -]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", head).lower()).replace(" ", "-") for head in heads}


class Links(unittest.TestCase):
    def test_every_page_and_heading_that_is_named_is_there(self):
        pages = ["README.md", "CONTRIBUTING.md", "SECURITY.md"] + [
            os.path.relpath(file, support.SOURCE) for pattern in ("docs/README.md", "docs/*/*.md", "plugins/*/README.md")
            for file in glob.glob(os.path.join(support.SOURCE, pattern))]
        for page in pages:
            for target, heading in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", doc_page.BLOCK.sub("", doc_page.read(page))):
                if "://" not in target:
                    path = os.path.join(support.SOURCE, os.path.dirname(page), target) if target else os.path.join(support.SOURCE, page)
                    self.assertTrue(os.path.exists(path), f"{page} names {target}")
                    if heading:
                        self.assertIn(heading, anchors(path), f"{page} names {target}")

    def test_every_page_of_docs_can_be_found_from_its_index_and_that_from_the_readme(self):
        self.assertIn("(docs/README.md)", doc_page.read("README.md"))
        index = doc_page.read("docs/README.md")
        pages = glob.glob(os.path.join(support.SOURCE, "docs", "*", "*.md"))
        self.assertGreater(len(pages), 20)
        for file in pages:
            self.assertIn(f"({os.path.relpath(file, os.path.join(support.SOURCE, 'docs'))})", index)


if __name__ == "__main__":
    unittest.main()
