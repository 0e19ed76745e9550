"""A JetStream stream as the outbox's demonstration needs it: made, and read once from its first message to its last."""

import itertools
import json
import socket
import time


class Stream:
    """Speaks NATS's own protocol over one connection. Not thread-safe."""

    def __init__(self, port, name, subjects):
        self.name = name
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.file = self.socket.makefile("rb")
        self.file.readline()  # INFO
        self.early = []  # deliveries that came before an answer
        self.write('CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true}')
        self.write("SUB answers.one 1")
        made = self.ask(f"$JS.API.STREAM.CREATE.{name}",
                        {"name": name, "subjects": subjects, "storage": "file", "retention": "limits"})
        if "error" in made:
            raise SystemExit(f"outbox: cannot make the stream: {made['error']['description']}")

    def write(self, line, payload=None):
        data = line.encode() + b"\r\n"
        self.socket.sendall(data if payload is None else data + payload + b"\r\n")

    def messages(self):
        """What the server sends: (subject, reply, headers, payload)."""
        while True:
            words = self.file.readline().decode().split()
            if not words:
                raise SystemExit("outbox: the NATS server has closed the connection")
            if words[0] == "PING":
                self.write("PONG")
            elif words[0] in ("MSG", "HMSG"):
                sizes = 2 if words[0] == "HMSG" else 1
                header = int(words[-2]) if sizes == 2 else 0
                data = self.file.read(int(words[-1]) + 2)[:-2]
                reply = words[3] if len(words) == 4 + sizes else ""
                yield words[1], reply, data[:header].decode(), data[header:]
            elif words[0] == "-ERR":
                raise SystemExit("outbox: the NATS server says " + " ".join(words[1:]))

    def ask(self, subject, request):
        self.write(f"PUB {subject} answers.one {len(json.dumps(request))}", json.dumps(request).encode())
        for message in self.messages():
            if message[0] == "answers.one":
                return json.loads(message[3])
            self.early.append(message)
        return {}

    def count(self):
        return self.ask(f"$JS.API.STREAM.INFO.{self.name}", {})["state"]["messages"]

    def read_all(self):
        """Each message of the stream in its order: (subject, headers, payload, seconds since the epoch of its storing)."""
        left = self.count()
        if left == 0:
            return
        inbox = f"deliveries.{time.monotonic_ns()}"
        self.write(f"SUB {inbox} 2")  # the server looks for a subscription of this very name
        self.ask(f"$JS.API.CONSUMER.CREATE.{self.name}",
                 {"stream_name": self.name, "config": {"deliver_subject": inbox, "deliver_policy": "all",
                                                       "ack_policy": "none", "replay_policy": "instant"}})
        for subject, reply, headers, payload in itertools.chain(self.early, self.messages()):
            if reply.startswith("$JS.ACK."):
                words = reply.split(".")  # ... stored_at pending
                yield subject, headers, payload, int(words[-2]) / 1e9
                left -= 1
                if left == 0:
                    return
