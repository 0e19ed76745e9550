"""A host under a supervisor, as systemd or a kubelet is one: when it ends, the next is started."""

import json
import threading

from support import Case, until


class Supervised(Case):
    """Works on queue orders with the fixture of that name."""

    def orders_job(self, extra=""):
        self.write_job("orders", options=f'log = "{self.path("done")}"\ndatabase = "{self.path("database")}"', extra=extra)

    def supervise(self):
        """Keeps a host running until the test ends; each has a log of its own."""
        self.ending = threading.Event()
        self.start("--drain-report", self.path("drained.json")).started()
        keeper = threading.Thread(target=self.keep)
        keeper.start()

        def end():
            self.ending.set()
            self.end_runs()
            keeper.join()
        self.addCleanup(end)

    def keep(self):
        while not self.ending.is_set():
            self.runs[-1].process.wait()
            if not self.ending.is_set():
                self.start()

    def hosts_started(self):
        return len(self.runs)

    def expect_restart(self):
        """Call before the host goes away; afterwards `host_log` is the next one's."""
        self.generation = self.hosts_started()

    def wait_for_restart(self):
        until("another host runs", lambda: self.hosts_started() > self.generation and "running" in self.host_log())

    def host_log(self):
        return self.runs[-1].log()

    def dead(self):
        return json.loads(self.sluice("dlq", "--queue", "orders", check=True).stdout)["total_messages_in_DLQ"]
