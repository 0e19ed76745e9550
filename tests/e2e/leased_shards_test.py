#!/usr/bin/env python3
"""Another number of shards for a queue of the leased layout, while hosts work on it on the DynamoDB emulator."""

import json

from leased_test import SHARDS, LeasedCase
from support import main, until


class LeasedShards(LeasedCase):
    def shards(self, *words):
        return json.loads(self.sluice("table", "shards", "--queue", "orders", "--json", *words, check=True).stdout)

    def test_the_number_of_shards_is_raised_and_lowered_while_hosts_work(self):
        self.counts(sleep="2ms")
        one = self.start(report="one.json")
        two = self.start(report="two.json")
        until("each has its share", lambda: self.all_owned(2))
        self.assertEqual([SHARDS, False], [self.shards()[name] for name in ("shards", "changed")])
        ids = self.send(100)
        raised = self.shards("--to", "10")
        self.assertEqual([SHARDS, 10, 10, True], [raised[name] for name in ("before", "shards", "most_ever", "changed")])
        self.assertFalse(self.shards("--to", "10")["changed"])
        ids += self.send(100)
        until("all ten are somebody's", lambda: sum(self.owners().values()) == 10)
        ids += self.send(100)
        lowered = self.shards("--to", "2")
        self.assertEqual([10, 2, 10, True], [lowered[name] for name in ("before", "shards", "most_ever", "changed")])
        self.assertEqual(["table shards of queue orders from 10 to 2", f"table shards of queue orders from {SHARDS} to 10"],
                         [deed["what"] for deed in json.loads(self.sluice("audit", "orders", "--json", check=True).stdout)])
        ids += self.send(100)
        until("all are worked off", lambda: len(self.worked()) >= len(ids))
        until("nothing is left", lambda: self.exact()["total"] == 0)
        self.assertEqual(sorted(ids), sorted(self.worked()), "each once")
        for wrong in ("0", "1025", "many"):
            self.assertEqual(64, self.sluice("table", "shards", "--queue", "orders", "--to", wrong).returncode, wrong)
        self.assertEqual((0, 0), (one.stop(), two.stop()), one.log() + two.log())


if __name__ == "__main__":
    main()
