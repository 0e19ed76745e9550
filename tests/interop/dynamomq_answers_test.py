#!/usr/bin/env python3
"""Our drop-in beside what DynamoMQ's Go program (v0.11.0) answered to the same commands on a fresh table.

dynamomq_answers.json has a step a line: the words, what is typed, and exit code, standard output by lines and the first
line of standard error, with TIME for times and ENDPOINT for the emulator's address. The Go program ran on the same
emulator. Where `out` is null ours says more; docs/start/moving-from-dynamomq.md tells what.
"""

import json
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import support

ANSWERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "dynamomq_answers.json")
TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")


class Answers(unittest.TestCase):
    def setUp(self):
        case = support.Case()
        case.store = "dynamodb"
        case.setUp()
        self.addCleanup(case.doCleanups)
        self.case = case
        self.program = case.path("dynamomq")
        os.symlink(os.path.abspath(support.SLUICE), self.program)
        self.endpoint = case.emulator.endpoint
        made = subprocess.run([support.SLUICE, "table", "create", "--table", "dynamo-mq-table", "--endpoint", self.endpoint],
                              capture_output=True, text=True, cwd=case.folder, env=case.environment, timeout=60)
        self.assertEqual(0, made.returncode, made.stderr)

    def answer(self, words, typed):
        done = subprocess.run([self.program, *words, "--endpoint-url", self.endpoint], input=typed, capture_output=True,
                              text=True, cwd=self.case.folder, env=self.case.environment, timeout=60)
        plain = [TIME.sub("TIME", text).replace(self.endpoint, "ENDPOINT") for text in (done.stdout, done.stderr)]
        return {"exit": done.returncode, "out": plain[0].split("\n"), "error": plain[1].split("\n")[0]}

    def test_they_are_dynamomqs(self):
        with open(ANSWERS, encoding="utf-8") as file:
            steps = json.load(file)
        for number, step in enumerate(steps, start=1):
            ours = self.answer(step["words"], step.get("typed", ""))
            if step["out"] is None:
                ours["out"] = None
            theirs = {key: step[key] for key in ours}
            self.assertEqual(theirs, ours, f"step {number}: dynamomq {' '.join(step['words'])}")


if __name__ == "__main__":
    support.main()
