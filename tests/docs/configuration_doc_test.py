#!/usr/bin/env python3
"""docs/run/configuration.md: a host file and a job file with every key that it names, at the defaults that it names, are good."""

import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import doc_page
from support import Case

PAGE = "docs/run/configuration.md"
# What is no default but must be there, or depends on the machine.
GIVEN = {"[host] name": '"a"', "[http] listen": '"127.0.0.1:0"', "[wake] listen": '"127.0.0.1:0"',
         "[wake] announce": '"127.0.0.1:0"', "[wake] secret": '"0123456789abcdef"', "[dynamodb] region": '"eu-west-1"', "[dynamodb] endpoint": '"http://127.0.0.1:1"',
         "[stores.NAME] kind": '"sqlite"', "[stores.NAME] path": '"other.db"', "[stores.NAME] region": None, "[stores.NAME] endpoint": None,
         "[log] handler": '["rollbar", "sentry", "datadog"]', "[log.rollbar] token": '"t"', "[log.sentry] dsn": '"https://k@sentry.io/1"',
         "[log.datadog] api_key": '"k"', "[tracing] endpoint": '"http://localhost:4317"', "[tracing] ca": '"ca.pem"',
         "[queues.NAME] store": '"NAME"', "[queues.NAME] table": '"orders-table"', "[queues.NAME] layout": '"dynamomq"', "[job] name": '"orders"', "[job] queue": '"orders"', "[job] handler": '"log"', "[job] queues": None,
         "[job.plugin] file": None, "[job.plugin] sha256": None, "[job.limits] memory": '"512MiB"', "[job.limits] cpu": '"10s"',
         "[job] isolation": '"process"', "[job] max_batch": None, "[job] rate_limit": '"100/s"', "[job.options]": None, "[[job.around]] handler": None, "[job.around.options]": None, "[job.idempotency] key": '"message"',
         "[queues.NAME] max_in_flight": "100", "[queues.NAME] shards": None, "[queues.NAME] fence": None, "[queues.NAME] max_write_units": None, "[queues.NAME] max_read_units": None,
         "[cost] attribute": '"tenant"', "[schedule.NAME] cron": '"30 6 * * MON-FRI"', "[schedule.NAME] every": None,
         "[schedule.NAME] queue": '"orders"', "[schedule.NAME] body": '"x"', "[schedule.NAME] attributes": '{ tenant = "acme" }'}


def keys(heading):
    """{"[section] key": the default as TOML, None for those that are left out}, in the order of the table behind a heading."""
    text = doc_page.read(PAGE).partition(f"## {heading}\n")[2].partition("\n## ")[0]
    found = {}
    for row in re.findall(r"^\| (`\[.*?) \| (.*?) \|", text, re.M):
        section = ""
        values = re.findall(r"`([^`]+)`", row[1].partition(", for source")[0])
        for index, word in enumerate(re.findall(r"`([^`]+)`", row[0])):
            section = word.partition("] ")[0] + "]" if word.startswith("[") else section
            key = word if word.startswith("[") else f"{section} {word}"
            found[key] = GIVEN[key] if key in GIVEN else values[index]
    return found


def toml(found):
    sections = {}
    for key, value in found.items():
        section, _, name = key.partition("] ")
        if value is not None:
            sections.setdefault(section + "]", []).append(f"{name} = {value}")
    return "".join(f"{section}\n" + "\n".join(lines) + "\n" for section, lines in sections.items())


class ConfigurationPage(Case):
    def test_its_keys_and_defaults(self):
        host, job = keys("The host file"), keys("A job file")
        self.assertGreater(len(host), 15)
        self.assertGreater(len(job), 15)
        self.write_job("log")
        self.write("host.toml", toml(host))
        self.write("jobs.d/orders.toml", toml(job))
        done = self.sluice("check")
        self.assertEqual(0, done.returncode, done.stdout + done.stderr + toml(host) + toml(job))

    def test_every_key_of_the_examples_is_on_it(self):
        named = set(keys("The host file")) | set(keys("A job file"))
        for file in ("host.toml", "host-dynamodb.toml", "jobs.d/log.toml"):
            section = ""
            for line in doc_page.read("config/examples/" + file).splitlines():
                line = line.lstrip("# ").strip()
                if re.fullmatch(r"\[[\w.]+\]( .*)?", line):
                    section = re.sub(r"^\[(stores|queues)\..*", r"[\1.NAME]", line.partition("]")[0] + "]")
                elif re.match(r"^[a-z_]+ = ", line) and section != "[job.options]":
                    self.assertIn(f"{section} {line.partition(' =')[0]}", named, file)


if __name__ == "__main__":
    unittest.main()
