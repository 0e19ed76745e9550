#!/usr/bin/env python3
"""The interactive mode as a person meets it: the real binary on a pseudo-terminal, both dialogues, both stores."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import support
from terminal import CTRL_A, CTRL_C, CTRL_D, CTRL_E, CTRL_R, CTRL_W, CTRL_Z, DELETE, LEFT, PATIENCE, UP, Terminal

DYNAMOMQ = os.path.join(os.path.abspath(support.BUILD), "bin", "dynamomq")
SLUICE = os.path.abspath(support.SLUICE)


class ShellCase(support.Case):
    """A folder with a host file that names queue orders."""

    def terminal(self, *words, columns=120):
        terminal = Terminal(list(words), self.folder, self.environment, columns)
        self.addCleanup(terminal.end)
        return terminal

    def stats(self):
        return json.loads(self.sluice("stats", "--queue", "orders", check=True).stdout)

    def history(self, name="history"):
        path = self.path(".local", "state", "sluice", name)
        self.assertEqual(0o600, stat.S_IMODE(os.stat(path).st_mode))
        with open(path, encoding="utf-8") as file:
            return file.read().splitlines()


class Edited:
    """`sluice shell`; mixed into a case for each store."""

    def shell(self, *words, columns=120, output="json"):
        self.environment["SLUICE_OUTPUT"] = output
        terminal = self.terminal(SLUICE, "shell", *words, columns=columns)
        terminal.expect("Ctrl-D ends.")
        terminal.expect_prompt("sluice orders> ")
        return terminal

    def test_runs_commands_until_ctrl_d(self):
        self.sluice("send", "--queue", "orders", "--id", "A-1", "--data", "1", check=True)
        terminal = self.shell()
        terminal.enter("stats")
        terminal.expect('"total": 1')
        terminal.expect_prompt("sluice orders> ")
        terminal.type(CTRL_D)
        self.assertEqual(0, terminal.finish())

    def test_shows_text_unless_somebody_asks_for_json(self):
        self.sluice("send", "--queue", "orders", "--id", "A-1", "--data", "1", check=True)
        terminal = self.shell(output="")
        terminal.enter("stats")
        terminal.expect("OLDEST READY")
        terminal.expect_prompt("sluice orders> ")
        terminal.enter("delete A-1")
        terminal.expect("removed  A-1")
        terminal.expect_prompt("sluice orders> ")
        terminal.enter("stats --json")
        terminal.expect('"total": 0')
        terminal.expect_prompt("sluice orders> ")

    def test_quit_and_failed_commands(self):
        terminal = self.shell()
        terminal.enter("get --id nobody")
        terminal.expect("sluice get: ")
        terminal.expect_prompt("sluice orders> ")
        terminal.enter("stast")
        terminal.expect("did you mean stats?")
        terminal.expect_prompt("sluice orders> ")
        terminal.enter("ls 'open")
        terminal.expect("column 4")
        terminal.expect_prompt("sluice orders> ")
        terminal.enter("quit")
        self.assertEqual(0, terminal.finish())

    def test_the_prompt_names_the_selected_message(self):
        self.sluice("send", "--queue", "orders", "--id", "A-101", "--data", "1", check=True)
        terminal = self.shell()
        terminal.enter("id A-101")
        terminal.expect('"id": "A-101"')
        terminal.expect_prompt("sluice orders A-101> ")
        terminal.enter("delete")
        terminal.expect_prompt("sluice orders> ")
        terminal.enter("stats")
        terminal.expect('"total": 0')

    def test_lines_are_edited(self):
        terminal = self.shell()
        terminal.type("tats")
        terminal.type(CTRL_A)
        terminal.type("s")
        terminal.type(CTRL_E)
        terminal.enter(" --queue orders")
        terminal.expect('"total": 0')
        terminal.expect_prompt("sluice orders> ")
        terminal.type("staXts")
        terminal.type(LEFT * 3 + DELETE)
        terminal.enter()
        terminal.expect('"total": 0')
        terminal.expect_prompt("sluice orders> ")
        terminal.type("stats wrong")
        terminal.type(CTRL_W)
        terminal.enter()
        terminal.expect('"total": 0')
        terminal.expect_prompt("sluice orders> ")

    def test_lines_hold_any_letters(self):
        terminal = self.shell()
        terminal.enter("send --id größe-日本 --data 1")
        terminal.expect("größe-日本\n")
        terminal.expect_prompt("sluice orders> ")
        terminal.type("id gröXße-日本")
        terminal.type(LEFT * 6 + DELETE)
        terminal.enter()
        terminal.expect_prompt("sluice orders größe-日本> ")

    def test_history_lives_on_without_content(self):
        terminal = self.shell()
        for line in ("stats", "send --id A-1 --text 'secret'", "ls --limit 3"):
            terminal.enter(line)
            terminal.expect_prompt("sluice orders> ")
        terminal.type(UP + UP)
        terminal.enter()
        terminal.expect("A-1 is in queue orders already")
        terminal.expect_prompt("sluice orders> ")
        terminal.enter(" version")
        terminal.expect_prompt("sluice orders> ")
        terminal.type(CTRL_D)
        self.assertEqual(0, terminal.finish())
        self.assertEqual(["stats", "ls --limit 3"], self.history())
        again = self.shell()
        again.type(UP + UP)
        again.enter()
        again.expect('"total": 1')
        again.expect_prompt("sluice orders> ")
        again.type(CTRL_R)
        again.type("limit")
        again.enter()
        again.expect('"A-1"')

    def test_tab_completes(self):
        self.sluice("send", "--queue", "orders", "--id", "A-101", "--data", "1", check=True)
        terminal = self.shell()
        terminal.type("sta\t")
        terminal.expect("stats ")
        terminal.type("--que\tor\t")
        terminal.expect("orders ")
        terminal.enter()
        terminal.expect('"total": 1')
        terminal.expect_prompt("sluice orders> ")
        terminal.type("get --id \t")
        terminal.expect("A-101 ")
        terminal.enter()
        terminal.expect('"id": "A-101"')
        terminal.expect_prompt("sluice orders> ")
        terminal.type("re\t")
        listed = terminal.expect("reset")
        self.assertIn("receive", listed)
        self.assertIn("redrive", listed)
        terminal.expect("sluice orders> re")
        terminal.type("s\t")
        terminal.expect("t ")
        terminal.type(CTRL_C)
        terminal.expect_prompt("sluice orders> ")

    def test_ctrl_c_drops_the_line(self):
        self.sluice("send", "--queue", "orders", "--id", "A-1", "--data", "1", check=True)
        terminal = self.shell()
        terminal.type("purge --yes")
        terminal.expect("purge --yes")
        terminal.type(CTRL_C)
        terminal.expect("^C")
        terminal.expect_prompt("sluice orders> ")
        terminal.type(CTRL_C)
        terminal.expect("^C")
        terminal.expect_prompt("sluice orders> ")
        terminal.enter("stats")
        terminal.expect('"total": 1')

    def test_ctrl_c_ends_a_question_and_not_the_shell(self):
        self.sluice("send", "--queue", "orders", "--id", "A-1", "--data", "1", check=True)
        terminal = self.shell()
        terminal.enter("purge")
        terminal.expect("[y/N] ")
        terminal.type(CTRL_C)
        terminal.expect_prompt("sluice orders> ")
        terminal.enter("stats")
        terminal.expect('"total": 1')
        terminal.expect_prompt("sluice orders> ")
        terminal.enter("purge")
        terminal.expect("[y/N] ")
        terminal.enter("y")
        terminal.expect_prompt("sluice orders> ")
        terminal.enter("stats")
        terminal.expect('"total": 0')

    def test_ctrl_c_ends_a_long_list_and_not_the_shell(self):
        self.send(3000)
        terminal = self.shell()
        terminal.enter("ls --all")
        terminal.expect('"statuses"')
        terminal.type(CTRL_C)
        shown = terminal.expect_prompt("sluice orders> ")
        self.assertLess(shown.count('"id"'), 2900)
        terminal.enter("stats")
        terminal.expect('"total": 3000')

    def test_a_command_reads_the_terminal_itself(self):
        terminal = self.shell()
        terminal.enter("send -")
        # What is typed before the editor has given the terminal back is the editor's kind of input.
        terminal.until(terminal.is_cooked)
        terminal.enter('{"typed": 1}')
        terminal.enter('{"typed": 2}')
        terminal.type(CTRL_D)
        terminal.expect_prompt("sluice orders> ")
        terminal.enter("stats")
        terminal.expect('"total": 2')

    def test_the_window_may_change_its_size(self):
        terminal = self.shell(columns=40)
        terminal.type("stats --queue orders --output json ")
        terminal.resize(25)
        terminal.type("--endpoint x" + "\x7f" * 12)
        terminal.resize(100)
        terminal.enter()
        terminal.expect('"total": 0')
        terminal.expect_prompt("sluice orders> ")

    def test_ctrl_z_and_fg(self):
        self.environment.update(PS1="job control: ", SLUICE_OUTPUT="json")
        terminal = self.terminal("/bin/bash", "--norc", "-i")
        terminal.expect("job control: ")
        terminal.enter(f"{SLUICE} shell")
        terminal.expect_prompt("sluice orders> ")
        terminal.type("stat")
        terminal.expect("stat")
        for _ in range(2):
            terminal.type(CTRL_Z)
            terminal.expect("Stopped")
            terminal.expect("job control: ")
            terminal.enter("stty -a")
            self.assertNotIn("-isig", terminal.expect("job control: "))
            terminal.enter("fg")
            terminal.expect_prompt("sluice orders> stat")
        terminal.enter("s")
        terminal.expect('"total": 0')
        terminal.expect_prompt("sluice orders> ")
        self.send(1)
        terminal.enter("purge")
        terminal.expect("[y/N] ")
        terminal.type(CTRL_Z)
        terminal.expect("Stopped")
        terminal.expect("job control: ")
        terminal.enter("fg")
        terminal.expect("sluice")
        terminal.enter("n")
        terminal.expect("nothing was removed")
        terminal.expect_prompt("sluice orders> ")

    def test_what_a_bulk_command_says_is_not_mixed(self):
        self.send(3)
        terminal = self.shell()
        terminal.enter("purge --yes")
        shown = terminal.expect_prompt("sluice orders> ")
        begin = shown.index("{")
        self.assertEqual(3, json.loads(shown[begin:])["removed"])

    def test_the_editor_opens_again_on_a_text_that_cannot_be_read(self):
        self.sluice("send", "--queue", "orders", "--id", "A-1", "--data", '{"n": 1}', check=True)
        self.write("editor.sh", "if grep -q broken \"$1\"; then sed -i 's/broken/7/' \"$1\"; "
                                "else sed -i 's/1/broken/' \"$1\"; fi\n")
        self.environment["EDITOR"] = "sh " + self.path("editor.sh")
        terminal = self.shell()
        terminal.enter("edit --id A-1")
        terminal.expect("line 3")
        terminal.expect("Edit again? [y/N] ")
        terminal.enter("y")
        terminal.expect('"n": 7')
        terminal.expect_prompt("sluice orders> ")

    def test_a_kill_gives_the_terminal_back(self):
        terminal = self.shell()
        terminal.type("half a line")
        terminal.expect("half a line")
        terminal.signal(signal.SIGTERM)
        while terminal._read():
            pass
        self.assertTrue(terminal.is_cooked())
        self.assertEqual(-signal.SIGTERM, terminal.finish())

    def test_a_script_prints_nothing_but_output(self):
        self.sluice("send", "--queue", "orders", "--id", "A-1", "--data", "1", check=True)
        script = "stats\n\n# comment\nid A-1\nfail\nget --id nobody\nunknown\nget"
        done = self.sluice("shell", "--queue", "orders", data=script)
        self.assertEqual(64, done.returncode, "the code of the last one that failed: " + done.stderr)
        decoder = json.JSONDecoder()
        found, text = [], done.stdout.strip()
        while text:
            value, end = decoder.raw_decode(text)
            found.append(value)
            text = text[end:].lstrip()
        self.assertEqual([1, "A-1", "A-1", "A-1"], [value.get("total", value.get("id")) for value in found])
        self.assertEqual(2, len(done.stderr.splitlines()), done.stderr)
        self.assertNotIn("\x1b", done.stdout + done.stderr)
        self.assertFalse(os.path.exists(self.path(".local")), "a script leaves no history")

    def test_a_script_may_hold_what_a_command_reads(self):
        done = self.sluice("shell", "--queue", "orders", data='stats\nsend -\n{"a": 1}\n{"a": 2}\n')
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(2, self.stats()["total"])

    def test_a_reader_that_goes_ends_it(self):
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run([SLUICE, "shell"], input=b"help\nhelp\n", stdout=write, stderr=subprocess.PIPE,
                              cwd=self.folder, env=self.environment, timeout=support.PATIENCE)
        os.close(write)
        self.assertEqual(b"", done.stderr)
        self.assertEqual(141, done.returncode)

    def test_a_broken_host_file_is_said_at_once(self):
        self.write("host.toml", "[stor]\n")
        done = self.sluice("shell", data="")
        self.assertEqual(78, done.returncode)
        self.assertIn("host.toml:1", done.stderr)


class DropIn:
    """`dynamomq` alone; mixed into a case for each store."""

    def words(self):
        if self.store == "sqlite":
            self.environment["SLUICE_CONFIG"] = self.path("host.toml")
            return [DYNAMOMQ]
        return [DYNAMOMQ, "--table-name", "orders", "--endpoint-url", self.emulator.endpoint]

    def piped(self, script):
        done = subprocess.run(self.words(), input=script, capture_output=True, text=True, cwd=self.folder,
                              env=self.environment, timeout=support.PATIENCE)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual("", done.stderr)
        return done.stdout

    def shell(self):
        terminal = self.terminal(*self.words())
        terminal.expect(">> Welcome to DynamoMQ CLI! [INTERACTIVE MODE]")
        terminal.expect("TableName: orders")
        terminal.expect_prompt("\n>> Enter command: ")
        return terminal

    def test_speaks_as_dynamomq_does(self):
        text = self.piped("enqueue-test\nid A-101\nsystem\nid\n\nnonsense\nq\nls\n")
        welcome, rest = text.split("\n>> Enter command: ", 1)
        self.assertIn("AWSRegion: ", welcome)
        self.assertIn("\nEndpointURL: " + ("file:" if self.store == "sqlite" else "http://127."), welcome)
        self.assertTrue(rest.startswith("Send a message with IDs:\n* ID: A-101\n"), rest)
        self.assertIn("\nID <A-101> >> Enter command: ID's system info:\n{\n  \"id\": \"A-101\",\n"
                      "  \"status\": \"READY\",", rest)
        self.assertIn("\nID <A-101> >> Enter command: Going back to standard Interactive mode!\n"
                      "\n>> Enter command: ERROR: unrecognized command\n"
                      "\n>> Enter command: ERROR: unrecognized command\n"
                      "\n>> Enter command: ... Interactive is ending\n\n\n", rest)
        self.assertTrue(text.endswith("... Interactive is ending\n\n\n"))
        self.assertNotIn("first 10 IDs", text, "what follows q is not read")

    def test_conformance_64_the_end_of_input_is_no_error(self):
        for script in ("", "\n", "unknown\n", "quit\n", "q", "qstat"):
            self.assertTrue(self.piped(script).endswith("... Interactive is ending\n\n\n"), script)

    def test_asks_nobody_where_nobody_is(self):
        text = self.piped("enqueue-test\npurge\nls\n")
        self.assertIn("List messages of removed IDs:\n* ID: A-", text)
        self.assertIn("Queue is empty!", text)
        self.assertNotIn("[y/N]", text)

    def test_edits_completes_and_remembers(self):
        terminal = self.shell()
        terminal.enter("enqueue-test")
        terminal.expect("* ID: A-404\n")
        terminal.expect_prompt("\n>> Enter command: ")
        terminal.type("d A-1\t")
        terminal.type(CTRL_A)
        terminal.type("i")
        terminal.enter()
        terminal.expect("ERROR: message not found")
        terminal.expect_prompt("\n>> Enter command: ")
        terminal.type("id A-1\t")
        terminal.expect("id A-101 ")
        terminal.enter()
        terminal.expect("Message's [A-101] record dump:")
        terminal.expect_prompt("\nID <A-101> >> Enter command: ")
        terminal.type("sys\t")
        terminal.enter()
        terminal.expect("ID's system info:")
        terminal.expect_prompt("\nID <A-101> >> Enter command: ")
        terminal.type("half")
        terminal.type(CTRL_C)
        terminal.expect_prompt("\nID <A-101> >> Enter command: ")
        terminal.type(UP)
        terminal.enter()
        terminal.expect("ID's system info:")
        terminal.expect_prompt("\nID <A-101> >> Enter command: ")
        terminal.type(CTRL_D)
        terminal.expect("... Interactive is ending\n\n\n")
        self.assertEqual(0, terminal.finish())
        self.assertEqual("enqueue-test", self.history("dynamomq_history")[0])

    def test_purge_asks_on_a_terminal(self):
        terminal = self.shell()
        terminal.enter("enqueue-test")
        terminal.expect_prompt("\n>> Enter command: ")
        terminal.enter("purge")
        terminal.expect("its DLQ included? [y/N] ")
        terminal.enter("n")
        terminal.expect("nothing was removed\n")
        terminal.expect_prompt("\n>> Enter command: ")
        terminal.enter("purge")
        terminal.expect("[y/N] ")
        terminal.enter("y")
        terminal.expect("List messages of removed IDs:")
        terminal.expect_prompt("\n>> Enter command: ")
        terminal.enter("ls")
        terminal.expect("Queue is empty!")
        terminal.enter("quit")
        terminal.expect("... Interactive is ending\n\n\n")
        self.assertEqual(0, terminal.finish())


class EditedSqlite(Edited, ShellCase):
    store = "sqlite"


class EditedDynamo(Edited, ShellCase):
    store = "dynamodb"

    def test_a_second_ctrl_c_ends_what_waits_for_an_answer(self):
        silent = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(silent.close)
        terminal = self.shell()
        terminal.enter(f"get --id A-1 --table orders --endpoint http://127.0.0.1:{silent.getsockname()[1]}")
        waiting, _ = silent.accept()
        self.addCleanup(waiting.close)
        presses = 0
        ended = False
        # As often as it takes: presses that come before the shell has seen the first one are one signal with it.
        end = time.monotonic() + PATIENCE
        while not ended and time.monotonic() < end:
            presses += 1
            terminal.type(CTRL_C)
            ended = not terminal.shows_more(1) or not terminal.shows_more(0.1)
        self.assertGreater(presses, 1)
        self.assertEqual(-signal.SIGINT, terminal.finish())


class DropInSqlite(DropIn, ShellCase):
    store = "sqlite"


class DropInDynamo(DropIn, ShellCase):
    store = "dynamodb"


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
