"""Services that a host sends log lines and spans to, on loopback: they keep what they get, and may be told to stall."""

import http.server
import os
import re
import shutil
import socket
import ssl
import struct
import subprocess
import threading

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures", "otlp")
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS, PING, WINDOW_UPDATE = 0, 1, 4, 6, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4


class HttpCollector:
    """Takes every POST. `statuses` are answered first, one each; `stall()` leaves all that follow without an answer."""

    def __init__(self, answer=b""):
        self.requests = []  # (path, headers, body)
        self.statuses = []
        self.going = threading.Event()
        self.going.set()
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.requests.append((self.path, dict(self.headers), body))
                collector.going.wait()
                status = collector.statuses.pop(0) if collector.statuses else 200
                try:
                    self.send_response(status)
                    self.send_header("Content-Length", str(len(answer)))
                    self.end_headers()
                    self.wfile.write(answer)
                except OSError:
                    pass  # the host has ended meanwhile

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stall(self):
        self.going.clear()

    def stop(self):
        self.going.set()
        self.server.shutdown()
        self.server.server_close()

    def bodies(self, path):
        return [body for where, _, body in list(self.requests) if where == path]


class GrpcCollector:
    """As much of HTTP/2 as one unary call a stream takes. What the headers say is not read: they are compressed."""

    def __init__(self, tls=None):
        self.tls = tls
        self.bodies = []  # of the messages, without their frames
        self.statuses = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def stop(self):
        self.listener.close()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        try:
            if self.tls:
                connection = self.tls.wrap_socket(connection, server_side=True)
            with connection, connection.makefile("rwb") as stream:
                if stream.read(len(PREFACE)) == PREFACE:
                    self.frames(stream)
        except OSError:
            pass

    @staticmethod
    def send(stream, kind, flags, number, payload=b""):
        stream.write(struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", number) + payload)
        stream.flush()

    def frames(self, stream):
        self.send(stream, SETTINGS, 0, 0)
        bodies = {}
        while len(head := stream.read(9)) == 9:
            length, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
            number = int.from_bytes(head[5:], "big") & 0x7FFFFFFF
            payload = stream.read(length)
            if kind == SETTINGS and not flags & ACK:
                self.send(stream, SETTINGS, ACK, 0)
            elif kind == PING and not flags & ACK:
                self.send(stream, PING, ACK, 0, payload)
            elif kind == DATA:
                bodies[number] = bodies.get(number, b"") + payload
                if length:
                    for window in (0, number):
                        self.send(stream, WINDOW_UPDATE, 0, window, struct.pack(">I", length))
            if kind in (DATA, HEADERS) and flags & END_STREAM:
                self.answer(stream, number, bodies.pop(number, b""))

    def answer(self, stream, number, frame):
        assert frame[0] == 0 and int.from_bytes(frame[1:5], "big") == len(frame) - 5, frame[:5]
        status = self.statuses.pop(0) if self.statuses else 0
        if status == 0:
            self.bodies.append(frame[5:])
        # Literals without indexing; 0x88 is ":status: 200" of the static table.
        literal = lambda name, value: b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value
        self.send(stream, HEADERS, END_HEADERS, number, b"\x88" + literal(b"content-type", b"application/grpc"))
        self.send(stream, DATA, 0, number, b"\x00\x00\x00\x00\x00")
        self.send(stream, HEADERS, END_HEADERS | END_STREAM, number, literal(b"grpc-status", str(status).encode()))


def authority(folder):
    """A certificate for 127.0.0.1 that signs itself, as a file; and what a server needs to show it."""
    certificate, key = os.path.join(folder, "ca.pem"), os.path.join(folder, "ca.key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=collector",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
                   check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.set_alpn_protocols(["h2"])
    return certificate, context


def decoder():
    return shutil.which("protoc")


def spans_of(bodies):
    """The spans of requests, as protoc reads them: one dict each, with `attributes`, and `resource` of its own."""
    spans = []
    for body in bodies:
        text = subprocess.run(
            ["protoc", "-I", FOLDER, "--decode=otlp.ExportTraceServiceRequest", "trace.proto"], input=body,
            capture_output=True, check=True, cwd=FOLDER).stdout.decode()
        resource = attributes(text.partition("scope_spans {")[0])
        for part in re.split(r"^    spans \{\n", text, flags=re.M)[1:]:
            span = {key: unescape(value) for key, value in re.findall(r'^      (\w+): "?(.*?)"?$', part, re.M)}
            for key in ("trace_id", "span_id", "parent_span_id"):
                span[key] = span[key].hex() if key in span else ""
            span = {key: value.decode() if isinstance(value, bytes) else value for key, value in span.items()}
            span["attributes"], span["resource"] = attributes(part), resource
            span["failed"] = "STATUS_CODE_ERROR" in part
            spans.append(span)
    return spans


def attributes(text):
    pairs = re.findall(r'key: "(.*?)"\s+value \{\s+\w+: "?(.*?)"?\n', text)
    return {key: unescape(value).decode() for key, value in pairs}


def unescape(text):
    """protoc's text form: octal escapes and the usual ones."""
    return text.encode().decode("unicode_escape").encode("latin-1")
