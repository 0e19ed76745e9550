"""What /healthz and /readyz say of a job's broker: a real nats-server that goes away and comes back, and with it what is
published; with handlers in the host and in processes of their own."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest
import urllib.error
import urllib.request

from support import BUILD, PATIENCE, SLUICE, free_port, until


class NatsServer:
    """With JetStream, in a folder and on a port of its own; ended by pid."""

    def __init__(self, folder):
        self.port = free_port()
        self.words = ["nats-server", "-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd", folder]
        self.process = None

    def start(self):
        self.process = subprocess.Popen(self.words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


@unittest.skipUnless(shutil.which("nats-server"), "nats-server is not installed; run ./dev deps")
class Broker(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="sluice-broker-")
        self.nats = NatsServer(os.path.join(self.folder, "stream"))
        self.host = None
        self.http = free_port()
        os.mkdir(os.path.join(self.folder, "jobs.d"))

    def tearDown(self):
        if self.host is not None:
            self.host.kill()
            self.host.wait()
        self.nats.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def configure(self, job=""):
        with open(os.path.join(self.folder, "host.toml"), "w", encoding="utf-8") as file:
            file.write(f'[host]\nstate_dir = "state"\nplugin_dirs = ["{os.path.join(BUILD, "plugins")}"]\n'
                       f'[http]\nlisten = "127.0.0.1:{self.http}"\n[store]\nkind = "sqlite"\npath = "queues.db"\n')
        with open(os.path.join(self.folder, "jobs.d", "relay.toml"), "w", encoding="utf-8") as file:
            file.write(f'[job]\nqueue = "events"\nhandler = "nats"\n{job}[job.options]\nsubject = "orders"\n'
                       f'servers = ["nats://127.0.0.1:{self.nats.port}"]\nreconnect_wait = "100ms"\ntimeout = "1s"\n')

    def start(self):
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.host = subprocess.Popen([SLUICE, "run"], cwd=self.folder, stdout=log, stderr=log)

    def send(self):
        done = subprocess.run([SLUICE, "send", "--queue", "events", "--data", "{}"], cwd=self.folder, capture_output=True,
                              text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)

    def probe(self, path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.http}{path}?format=json", timeout=PATIENCE) as answer:
                return answer.status, json.load(answer)["components"].get("broker relay", {})
        except (OSError, urllib.error.URLError):
            return 0, {}

    def expect(self, status, text):
        """Both probes name the broker so, and the host is none the less healthy and ready."""
        def said():
            found = [self.probe(path) for path in ("/healthz", "/readyz")]
            return all(code == 200 and broker.get("status") == status and text in broker["text"] for code, broker in found)

        until(f"the broker is {status}: {text}", said)

    def test_a_server_that_goes_away_and_comes_back(self):
        self.configure()
        self.start()
        self.expect("failing", "no server of NATS is connected")
        self.nats.start()
        self.expect("ok", f"connected to nats://127.0.0.1:{self.nats.port}")
        self.nats.kill()
        self.expect("failing", "the connection is lost")
        self.nats.start()
        self.expect("ok", "connected to")

    def test_a_handler_in_a_process_of_its_own_tells_it_with_its_messages(self):
        self.configure('isolation = "process"\nconcurrency = 1\n')
        self.nats.start()
        self.start()
        self.send()
        self.expect("ok", "connected to")
        self.nats.kill()
        self.send()
        self.expect("failing", "")


if __name__ == "__main__":
    unittest.main()
