#!/usr/bin/env python3
"""Log lines and spans on their way to collectors, and that no collector, dead, slow or refusing, holds up any work."""

import json
import signal

import collectors
from support import Case, free_port, http, main, until

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SECRETS = ("rollbar-s3cret", "sentry-s3cret", "datadog-s3cret", "otlp-s3cret")


class Telemetry(Case):
    def write_telemetry(self, log="", tracing="", drain="10s"):
        """[log] and [tracing] beside what every host file has."""
        self.port = free_port()
        self.write_host(http_port=self.port, extra=tracing, drain=drain)
        with open(self.path("host.toml"), encoding="utf-8") as file:
            text = file.read()
        self.write("host.toml", text.replace('[log]\nlevel = "debug"\n', f'[log]\nlevel = "debug"\n{log}'))
        self.sluice("check", check=True)

    def collector(self, made):
        self.addCleanup(made.stop)
        return made

    def services(self, port):
        return (f'handler = ["json", "rollbar", "sentry", "datadog"]\n'
                f'[log.rollbar]\ntoken = "{SECRETS[0]}"\nendpoint = "http://127.0.0.1:{port}"\n'
                f'[log.sentry]\ndsn = "http://{SECRETS[1]}@127.0.0.1:{port}/42"\nlevel = "error"\n'
                f'[log.datadog]\napi_key = "{SECRETS[2]}"\nendpoint = "http://127.0.0.1:{port}"\n'
                f'service = "mailer"\nenvironment = "test"\n')

    def tracing(self, port, protocol, more=""):
        return (f'[tracing]\nendpoint = "http://127.0.0.1:{port}"\nprotocol = "{protocol}"\nservice = "mailer"\n'
                f'environment = "test"\nattributes = {{ team = "orders" }}\nheaders = {{ x-key = "{SECRETS[3]}" }}\n{more}')

    def metric(self, name, sender):
        for line in http(self.port, "/metrics")[1].splitlines():
            if line.startswith(f'{name}{{sender="{sender}"}}'):
                return float(line.rsplit(" ", 1)[1])
        return None

    def decoded(self, bodies):
        if collectors.decoder() is None:
            self.skipTest("SKIPPED: no protoc; ./dev deps test installs it")
        return collectors.spans_of(bodies)


class LogSenders(Telemetry):
    def test_each_service_gets_its_lines_and_secrets_stay_where_they_are(self):
        server = self.collector(collectors.HttpCollector())
        self.write_telemetry(log=self.services(server.port), tracing=self.tracing(server.port, "http"))
        self.write_job("fails", options='outcome = "reject"\nreason = "no such customer"')
        self.send(3)
        run = self.start()
        until("they are given up", lambda: self.stats()["dlq"] == 3)
        until("rollbar has them", lambda: len(server.bodies("/api/1/item/")) >= 3)
        status, text = http(self.port, "/readyz")
        self.assertEqual(200, status)
        self.assertEqual("ready", text.splitlines()[0], "the first line is the answer")
        self.assertIn("store: ok", text.splitlines())
        for name in ("rollbar", "sentry", "datadog", "otlp"):
            self.assertRegex(text, rf"(?m)^sender {name}: ok; \d+ sent")
        answer = json.loads(http(self.port, "/healthz?format=json")[1])
        self.assertEqual(("ok", "healthy", "ok"), (answer["status"], answer["text"], answer["components"]["store"]["status"]))
        self.assertGreaterEqual(self.metric("sluice_sender_sent_total", "rollbar"), 3)
        self.assertEqual(0, self.metric("sluice_sender_dropped_total", "rollbar"))
        self.assertEqual(0, run.stop(), run.log())

        items = [json.loads(body)["data"] for body in server.bodies("/api/1/item/")]
        self.assertEqual({"warning"}, {item["level"] for item in items})
        self.assertTrue(any("no such customer" in json.dumps(item["body"]) for item in items), items)
        self.assertEqual([], server.bodies("/api/42/envelope/"), "nothing was an error")
        lines = [line for body in server.bodies("/api/v2/logs") for line in json.loads(body)]
        running = next(line for line in lines if line["message"] == "running")
        self.assertEqual(("info", "mailer", "test", "sluice"),
                         (running["status"], running["service"], running["dd.env"], running["ddsource"]))
        self.assertIn("draining", [line["message"] for line in lines], "what was said last is sent too")
        said = run.log() + self.sluice("check", check=True).stdout + http(self.port, "/readyz")[1]
        for secret in SECRETS:
            self.assertNotIn(secret, said)
            self.assertNotIn(secret, "".join(body.decode("latin-1") for _, _, body in server.requests))
        headers = {path: sent for path, sent, _ in server.requests}
        self.assertEqual(SECRETS[0], headers["/api/1/item/"]["X-Rollbar-Access-Token"])
        self.assertEqual(SECRETS[2], headers["/api/v2/logs"]["DD-API-KEY"])
        self.assertEqual(SECRETS[3], headers["/v1/traces"]["x-key"])

    def test_sentry_gets_events_in_envelopes(self):
        server = self.collector(collectors.HttpCollector())
        self.write_telemetry(log=self.services(server.port).replace('level = "error"\n', ""))
        self.write_job("handle_throws_std", extra="[job.retry]\nmax_attempts = 1")
        self.send(1)
        run = self.start()
        until("sentry has it", lambda: server.bodies("/api/42/envelope/"))
        self.assertEqual(0, run.stop(), run.log())
        header, item, event, _ = server.bodies("/api/42/envelope/")[0].split(b"\n")
        event = json.loads(event)
        self.assertEqual(json.loads(header)["event_id"], event["event_id"])
        self.assertEqual("event", json.loads(item)["type"])
        self.assertEqual("warning", event["level"])
        _, headers, _ = next(request for request in server.requests if request[0] == "/api/42/envelope/")
        self.assertIn("sentry_key=" + SECRETS[1], headers["X-Sentry-Auth"])

    def test_a_collector_that_is_not_there_is_named_and_nothing_else(self):
        dead = free_port()
        self.write_telemetry(log=self.services(dead), tracing=self.tracing(dead, "grpc"))
        self.write_job("counts", options=f'path = "{self.path("done")}"')
        self.send(20)
        run = self.start("--until-empty")
        self.assertEqual(0, run.wait(), run.log())
        self.assertEqual(20, len(set(self.lines("done"))))
        self.assert_certificate(run, done=20)
        self.assertRegex(run.log(), rf'\d+ items for datadog were not sent before the end: cannot connect to http://127.0.0.1:{dead}')
        self.assertRegex(run.log(), r"\d+ items for otlp were not sent before the end")


class Stalls(Telemetry):
    def test_collectors_that_never_answer_hold_up_neither_work_nor_the_end(self):
        server = self.collector(collectors.HttpCollector())
        server.stall()
        self.write_telemetry(log=self.services(server.port), tracing=self.tracing(server.port, "http"))
        self.write_job("fails", name="fails", options='outcome = "reject"', queue="orders")
        self.write_job("counts", name="counts", options=f'path = "{self.path("done")}"', queue="bulk")
        self.send(1500, queue="orders")
        self.send(5000, queue="bulk")
        run = self.start()
        until("all of it is worked on", lambda: len(self.lines("done")) == 5000 and self.stats()["dlq"] == 1500)
        until("rollbar's queue is bounded", lambda: self.metric("sluice_sender_dropped_total", "rollbar") > 0)
        self.assertLessEqual(self.metric("sluice_sender_queue", "rollbar"), 1000)
        self.assertEqual(200, http(self.port, "/readyz")[0], "that is no reason not to be ready")
        self.assertEqual(0, run.stop(), run.log())
        self.assert_certificate(run, done=5000, rejected=1500, stranded=0)
        lines = [json.loads(line)["message"] for line in run.log().splitlines()]
        certificate = next(i for i, line in enumerate(lines) if line.startswith("drain certificate"))
        self.assertTrue(any("were not sent before the end" in line for line in lines[certificate:]), lines[-5:])
        drops = [line for line in lines[:certificate] if "items for rollbar were dropped: it does not keep up" in line]
        self.assertEqual(1, len(drops), "one line, however many are dropped")

    def test_a_second_signal_waits_for_no_collector(self):
        server = self.collector(collectors.HttpCollector())
        server.stall()
        self.write_telemetry(log=self.services(server.port), drain="1h")
        self.write_job("exec", options='command = ["sleep", "3600"]')
        self.send(1)
        run = self.start().started()
        until("it hangs", lambda: self.at_work() == 1)
        run.kill(signal.SIGTERM)
        until("it drains", lambda: '"draining"' in run.log())
        run.kill(signal.SIGTERM)
        self.assertIn(run.wait(), (0, 75), "as the command ends in time or not")
        self.assertNotIn("not sent before the end", run.log(), "nothing was waited for")


class Traces(Telemetry):
    def test_a_message_and_what_its_handler_sends_are_one_trace(self):
        server = self.collector(collectors.GrpcCollector())
        server.statuses = [14, 14]  # UNAVAILABLE: to be tried again
        self.write_telemetry(tracing=self.tracing(server.port, "grpc"))
        script = f'echo "$SLUICE_ATTR_TRACEPARENT" >> {self.path("seen")}'
        self.write_job("forwards", name="orders", queue="orders")
        self.write_job("exec", name="receipts", queue="receipts",
                       options=f"shell = true\ncommand = [{json.dumps(script)}]")
        self.sluice("send", "--queue", "orders", "--attr", "traceparent=" + PARENT, "--attr", "tracestate=congo=t61",
                    "--text", "x", check=True)
        run = self.start()
        until("the command ran", lambda: len(self.lines("seen")) == 1)
        self.assertEqual(0, run.stop(), run.log())
        spans = self.decoded(server.bodies)
        self.assertEqual([], server.statuses)
        self.assertEqual({"0af7651916cd43dd8448eb211c80319c"}, {span["trace_id"] for span in spans})
        self.assertEqual({"congo=t61"}, {span["trace_state"] for span in spans})
        by = {(span["attributes"]["sluice.job"], span["name"]): span for span in spans}
        self.assertEqual(6, len(by), spans)
        claim, handle, settle = (by["orders", name] for name in ("claim", "handle", "settle"))
        self.assertEqual("b7ad6b7169203331", claim["parent_span_id"])
        self.assertEqual([claim["span_id"]] * 2, [handle["parent_span_id"], settle["parent_span_id"]])
        self.assertEqual(handle["span_id"], by["receipts", "claim"]["parent_span_id"], "what it sent is below it")
        below = by["receipts", "handle"]
        self.assertEqual([f"00-{below['trace_id']}-{below['span_id']}-01"], self.lines("seen"), "the handler reads it")
        self.assertEqual(("mailer", "test", "orders"), tuple(
            handle["resource"][key] for key in ("service.name", "deployment.environment", "team")))
        self.assertLessEqual(int(claim["start_time_unix_nano"]), int(handle["start_time_unix_nano"]))
        self.assertLessEqual(int(handle["start_time_unix_nano"]), int(handle["end_time_unix_nano"]))

    def test_over_http_with_processes_of_their_own(self):
        server = self.collector(collectors.HttpCollector())
        self.write_telemetry(log='handler = "datadog"\n', tracing=self.tracing(server.port, "http"))
        self.write_job("fails", options='outcome = "reject"\nreason = "no such customer"', extra='isolation = "process"')
        self.send(2)
        run = self.start()
        until("they are given up", lambda: self.stats()["dlq"] == 2)
        self.assertEqual(0, run.stop(), run.log())
        handled = [span for span in self.decoded(server.bodies("/v1/traces")) if span["name"] == "handle"]
        self.assertEqual(2, len({span["trace_id"] for span in handled}))
        self.assertTrue(all(span["failed"] for span in handled), handled)
        for line in run.log().splitlines():
            self.assertLessEqual({"timestamp", "status", "message", "service"}, set(json.loads(line)), line)

    def test_over_tls_by_an_authority_that_the_host_file_names(self):
        certificate, context = collectors.authority(self.folder)
        server = self.collector(collectors.GrpcCollector(context))
        for ca, arrives in ((f'ca = "{certificate}"\n', True), ("", False)):
            self.write_telemetry(tracing=self.tracing(server.port, "grpc", ca).replace("http://", "https://"))
            self.write_job("counts", options=f'path = "{self.path("done")}"')
            self.send(1)
            server.bodies.clear()
            run = self.start()
            if arrives:
                until("the spans are there", lambda: server.bodies)
            else:
                until("it is told", lambda: "cannot trust https://127.0.0.1" in http(self.port, "/readyz")[1])
            self.assertEqual(0, run.stop(), run.log())
            self.assertEqual(arrives, bool(server.bodies), run.log())
            self.assertEqual(arrives, "cannot trust https://127.0.0.1" not in run.log(), run.log())

    def test_an_authority_that_cannot_be_read_is_an_error_at_the_start(self):
        self.write_telemetry(tracing=self.tracing(1, "grpc", 'ca = "nowhere.pem"\n'))
        self.write_job("counts", options=f'path = "{self.path("done")}"')
        run = self.start()
        self.assertEqual(78, run.wait())
        self.assert_one_line(run.log(), "cannot read .*nowhere.pem: No such file", r"mend 'ca' in \[tracing\]")

    def test_what_is_not_sampled_is_not_sent_and_still_handed_on(self):
        server = self.collector(collectors.HttpCollector())
        self.write_telemetry(tracing=self.tracing(server.port, "http", 'sampler = "never"\n'))
        called = self.collector(collectors.HttpCollector())
        self.write_job("webhook", options=f'url = "http://127.0.0.1:{called.port}/"')
        self.sluice("send", "--queue", "orders", "--attr", "traceparent=" + PARENT, "--text", "x", check=True)
        run = self.start("--until-empty")
        self.assertEqual(0, run.wait(), run.log())
        (_, headers, _), = called.requests
        self.assertRegex(headers["traceparent"], "^00-0af7651916cd43dd8448eb211c80319c-[0-9a-f]{16}-00$")
        self.assertEqual([], server.requests)


if __name__ == "__main__":
    main()
