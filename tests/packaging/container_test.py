#!/usr/bin/env python3
"""The image and kubernetes.yaml as they are written, in namespaces: process 1, read-only root, no privileges, volumes."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

import yaml

import pod
import support

QUEUES_OF_AWS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
CONFIGURATION = 78
SERVICE = """
import http.server, sys
class Hook(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        with open(sys.argv[1], "a") as file:
            file.write(self.path + " " + self.headers.get("Authorization", "-") + " " + body + "\\n")
        self.send_response(204)
        self.end_headers()
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 80), Hook)
print("up", flush=True)
server.serve_forever()
"""


class Box(unittest.TestCase):
    """A folder, an image, a network; and whatever runs ends with the test."""

    @classmethod
    def setUpClass(cls):
        why_not = pod.runs_here()
        if why_not:
            raise unittest.SkipTest(why_not)
        cls.image = pod.Image()
        cls.addClassCleanup(cls.image.remove)

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="sluice-box-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        os.chmod(self.folder, 0o755)
        self.network = pod.Network()
        self.addCleanup(self.network.stop)

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def start(self, volumes, words, environment=None, answers="/healthz"):
        container = pod.Container(self.image, self.network, volumes, words, environment or {}, self.path("log"))
        self.addCleanup(container.remove)
        support.until("it answers", lambda: self.probe(answers)[0] == 200 or container.process.poll() is not None)
        self.assertIsNone(container.process.poll(), container.log())
        return container

    def probe(self, path):
        return self.network.get(f"http://127.0.0.1:9464{path}")

    def says(self, container, *words, data=None):
        done = container.exec(*words, data=data)
        self.assertEqual(0, done.returncode, f"{words}: {done.stdout}{done.stderr}\n{container.log()}")
        return done.stdout


class Container(Box):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("jobs.d"))
        os.mkdir(self.path("plugins"))
        shutil.copy(os.path.join(support.SOURCE, "config", "examples", "jobs.d", "log.toml"), self.path("jobs.d"))
        # What an operator's files are: somebody else's, on a mount that is read-only.
        for folder in ("jobs.d", "plugins"):
            os.chown(self.path(folder), 1000, 1000)

    def volumes(self):
        """Those of the `docker run` in deploying.md: a named one begins as a copy of what the image has there."""
        with open(os.path.join(support.SOURCE, "docs/run/deploying.md"), encoding="utf-8") as file:
            line = re.search(r"^docker run (.*?)$", file.read().replace("\\\n", " "), re.M).group(1)
        found = []
        for source, target, mode in re.findall(r"-v (\S+?):([^\s:]+)(?::(ro))?", line):
            if not source.startswith("./") and not os.path.exists(self.path(source)):
                os.mkdir(self.path(source), 0o700)
                os.chown(self.path(source), self.image.user, self.image.user)
            found.append((os.path.normpath(self.path(source)), target, mode or "rw"))
        self.assertIn(self.image.last("VOLUME"), [target for _, target, mode in found if mode == "rw"])
        return found

    def run_image(self):
        return self.start(self.volumes(), self.image.words("ENTRYPOINT") + self.image.words("CMD"))

    def test_the_line_of_the_page_keeps_its_data(self):
        first = self.run_image()
        self.says(first, "sluice", "send", "--queue", "greetings", "--text", "hello", "--id", "later", "--delay", "1h")
        self.assertEqual(0, first.stop(signal.SIGTERM), first.log())
        again = self.run_image()
        self.assertEqual("later", json.loads(self.says(again, "sluice", "get", "--queue", "greetings", "--id", "later"))["id"])
        self.assertEqual(0, again.stop(signal.SIGTERM), again.log())

    def test_it_has_no_privileges_and_writes_to_its_volume_alone(self):
        container = self.run_image()
        status = self.says(container, "cat", "/proc/1/status")
        for name, value in (("CapEff", "0000000000000000"), ("CapBnd", "0000000000000000"), ("NoNewPrivs", "1")):
            self.assertIn(value, re.search(rf"^{name}:\s+(\S+)$", status, re.M).group(1))
        self.assertNotEqual(0, container.exec("sh", "-c", "echo > /etc/sluice/x || echo > /x").returncode)
        self.assertEqual(0, container.stop(signal.SIGTERM), container.log())

    def test_its_health_check_and_its_commands(self):
        container = self.run_image()
        self.assertEqual(["healthy", "store: ok"], self.says(container, *self.image.health_check).split("\n")[:2])
        self.assertIn("DynamoMQ", self.says(container, "dynamomq", "--help"))
        self.says(container, "sluice", "send", "--queue", "greetings", "--text", "hello world")
        support.until("it is worked off", lambda: "hello world" in container.log())
        handlers = re.findall(r"^(\S+) ", self.says(container, "sluice", "plugins", "--output", "text"), re.M)
        self.assertEqual({"log", "verify-file", "exec", "webhook", "nats", "sns", "queue"}, set(handlers))
        self.assertEqual(0, container.stop(signal.SIGTERM), container.log())

    def test_it_is_reloaded_and_drained_from_inside(self):
        container = self.run_image()
        shutil.copy(self.path("jobs.d", "log.toml"), self.path("jobs.d", "more.toml"))
        with open(self.path("jobs.d", "more.toml"), "a", encoding="utf-8") as file:
            file.write("nonsense = 1\n")
        refused = container.exec("sluice", "reload")
        self.assertEqual(CONFIGURATION, refused.returncode, refused.stdout + refused.stderr)
        self.assertIn("nonsense", refused.stdout + refused.stderr)
        os.remove(self.path("jobs.d", "more.toml"))
        self.says(container, "sluice", "reload")
        self.assertIn("box", self.says(container, "sluice", "hosts"))
        container.exec("sluice", "drain", "--wait")
        self.assertEqual(0, container.wait(), container.log())

    def test_the_process_is_number_one_and_says_what_became_of_everything(self):
        container = self.run_image()
        self.says(container, "sluice", "send", "--queue", "greetings", "-", data="1\n" * 100)
        support.until("all are gone", lambda: json.loads(
            self.says(container, "sluice", "stats", "--queue", "greetings"))["total"] == 0)
        self.assertIn("sluice", self.says(container, "cat", "/proc/1/cmdline"))
        self.assertEqual(0, container.stop(signal.SIGTERM))
        self.assertRegex(container.log().strip().splitlines()[-1], r"claimed.*100.*stranded")


class Kubernetes(Box):
    """config/examples/kubernetes.yaml, with the emulator in the place of AWS and a server in that of the service."""

    def setUp(self):
        super().setUp()
        if not os.access(support.EMULATOR, os.X_OK):
            self.skipTest("SKIPPED: no DynamoDB emulator; ./dev deps installs it")
        with open(os.path.join(support.SOURCE, "config", "examples", "kubernetes.yaml"), encoding="utf-8") as file:
            self.documents = {document["kind"]: document for document in yaml.safe_load_all(file)}
        self.spec = self.documents["Deployment"]["spec"]["template"]["spec"]
        self.container = self.spec["containers"][0]
        self.assertEqual(self.image.user, self.spec["securityContext"]["runAsUser"])
        self.image.write_etc("hosts", "127.0.0.1 localhost orders.default.svc.cluster.local\n")
        self.background(support.EMULATOR, "--host", "127.0.0.1", "--port", "8000")
        service = self.background("/usr/bin/python3", "-c", SERVICE, self.path("posted"))
        self.assertEqual("up\n", service.stdout.readline())
        self.environment = dict(QUEUES_OF_AWS, AWS_ENDPOINT_URL="http://127.0.0.1:8000", POD_NAME="sluice-0", ORDERS_TOKEN="sesame")
        named = {entry["name"] for entry in self.container["env"]}
        self.assertLessEqual(named, set(self.environment))
        self.lay_volumes()

    def background(self, *words):
        process = subprocess.Popen(self.network.enter(*words), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

        def end():
            process.kill()
            process.wait()
            process.stdout.close()
        self.addCleanup(end)
        return process

    def lay_volumes(self):
        self.sources = {}
        for volume in self.spec["volumes"]:
            if "configMap" in volume:
                self.config = pod.ConfigMap(self.path(volume["name"]), volume["configMap"]["items"])
                self.config.write(self.documents["ConfigMap"]["data"])
                self.sources[volume["name"]] = self.config.folder
            else:
                self.sources[volume["name"]] = pod.empty_dir(self.path(volume["name"]), self.spec["securityContext"]["fsGroup"])
        self.volumes = [(self.sources[mount["name"]], mount["mountPath"], "ro" if mount.get("readOnly") else "rw")
                        for mount in self.container["volumeMounts"]]
        # What the init container does: your plugins, copied by the pod's user.
        greeter = shutil.copy(os.path.join(support.SHIPPED_PLUGINS, "greeter.so"), self.sources["plugins"])
        os.chown(greeter, self.image.user, self.image.user)

    def run_pod(self):
        words = self.image.words("ENTRYPOINT") + self.container["args"]
        table = pod.Container(self.image, self.network, self.volumes,
                              self.image.words("ENTRYPOINT") + ["table", "create", "--table", "dynamo-mq-table"],
                              dict(self.environment, AWS_REGION="eu-west-1"), self.path("table"))
        self.addCleanup(table.remove)
        support.until("the emulator listens", lambda: self.network.get("http://127.0.0.1:8000/")[0])
        self.assertEqual(0, table.wait(), table.log())
        return self.start(self.volumes, words, self.environment, self.container["startupProbe"]["httpGet"]["path"])

    def posted(self):
        try:
            with open(self.path("posted"), encoding="utf-8") as file:
                return file.read().splitlines()
        except FileNotFoundError:
            return []

    def test_it_works_as_it_is_written(self):
        container = self.run_pod()
        for probe in ("livenessProbe", "readinessProbe"):
            self.assertEqual(200, self.probe(self.container[probe]["httpGet"]["path"])[0])
        self.says(container, "sluice", "send", "--queue", "orders", "--data", '{"n":1}')
        support.until("it is posted\n" + container.log(), self.posted)
        self.assertEqual(['/hooks/orders Bearer sesame {"n":1}'], self.posted())
        self.assertIn("greeter", self.says(container, "sluice", "plugins"))
        self.assertEqual([], [file for file in os.listdir(self.sources["tmp"]) if os.path.isfile(self.path("tmp", file))])
        self.assertEqual(0, container.stop(signal.SIGTERM), container.log())
        self.assertIn("stranded", container.log().strip().splitlines()[-1])

    def reload(self, container):
        """The command that the file's first lines name for it."""
        with open(os.path.join(support.SOURCE, "config", "examples", "kubernetes.yaml"), encoding="utf-8") as file:
            command = re.search(r"kubectl exec deploy/sluice -- (.*?)(?: {2,}#.*)?$", file.read(), re.M).group(1)
        return container.exec(*command.split())

    def test_a_change_of_the_config_map_and_a_bad_one(self):
        container = self.run_pod()
        entries = dict(self.documents["ConfigMap"]["data"])
        entries["orders.toml"] = entries["orders.toml"].replace("/hooks/orders", "/hooks/new")
        self.config.write(entries)
        done = self.reload(container)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        self.assertTrue(self.sends_to(container, "/hooks/new"))
        self.config.write(dict(entries, **{"orders.toml": entries["orders.toml"].replace("concurrency", "concurency")}))
        refused = self.reload(container)
        self.assertEqual(CONFIGURATION, refused.returncode)
        self.assertIn("concurency", refused.stdout + refused.stderr)
        self.assertTrue(self.sends_to(container, "/hooks/new"))
        self.assertEqual(0, container.stop(signal.SIGTERM), container.log())

    def sends_to(self, container, path):
        count = len(self.posted())
        self.says(container, "sluice", "send", "--queue", "orders", "--data", "1")
        support.until("it is posted", lambda: len(self.posted()) > count)
        return self.posted()[-1].startswith(path + " ")

    def test_the_grace_period_is_enough(self):
        drain = int(re.search(r'drain_timeout = "(\d+)s"', self.documents["ConfigMap"]["data"]["host.toml"]).group(1))
        self.assertGreaterEqual(self.spec["terminationGracePeriodSeconds"], drain + 10)

    def test_every_mount_has_a_volume_and_every_entry_a_place(self):
        names = {volume["name"] for volume in self.spec["volumes"]}
        for container in self.spec["containers"] + self.spec["initContainers"]:
            self.assertLessEqual({mount["name"] for mount in container["volumeMounts"]}, names)
            self.assertTrue(container["securityContext"]["readOnlyRootFilesystem"])
            self.assertEqual(["ALL"], container["securityContext"]["capabilities"]["drop"])
        self.assertEqual({item["key"] for item in self.config.items}, set(self.documents["ConfigMap"]["data"]))


if __name__ == "__main__":
    unittest.main()
