#!/usr/bin/python3
"""Writes cases.txt: cron lines and the next five times in UTC, as croniter (Debian's python3-croniter) has them.

Lines for which crons differ are left out.
"""

import datetime
import os
import random

from croniter import croniter

MONTHS = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split()
WEEKDAYS = "SUN MON TUE WED THU FRI SAT".split()


def field(rng, least, most, names=None):
    kind = rng.random()
    if kind < 0.3:
        return "*"
    if kind < 0.45:
        return f"*/{rng.randint(2, max(2, (most - least) // 2))}"
    parts = []
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        a = rng.randint(least, most)
        b = rng.randint(a, most)
        if rng.random() < 0.5 or a == b:
            parts.append(names[a - (least if names is MONTHS else 0)] if names and rng.random() < 0.5 else str(a))
        else:
            step = f"/{rng.randint(1, b - a)}" if rng.random() < 0.4 else ""
            parts.append(f"{a}-{b}{step}")
    return ",".join(parts)


def lines():
    yield from ["* * * * *", "0 0 29 2 *", "0 0 31 * *", "30 6 * * MON-FRI", "0 12 1 * *", "15,45 */6 * * *", "0 0 13 * FRI", "59 23 31 12 *"]
    rng = random.Random(20260102)
    for _ in range(400):
        day, weekday = field(rng, 1, 31), field(rng, 0, 6, WEEKDAYS)
        if day != "*" and weekday != "*" and ("/" in day + weekday and "*" in day + weekday):
            continue
        yield " ".join([field(rng, 0, 59), field(rng, 0, 23), day, field(rng, 1, 12, MONTHS), weekday])


def main():
    rng = random.Random(7)
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases.txt"), "w", encoding="utf-8") as out:
        for line in lines():
            begin = datetime.datetime(2024, 1, 1) + datetime.timedelta(seconds=rng.randint(0, 5 * 365 * 86400))
            try:
                expanded = croniter.expand(line)[0]
                if any(expanded[i] == ["*"] and line.split()[i] != "*" for i in (2, 4)):
                    continue  # all days by name: a restriction, where crons follow POSIX
                times = croniter(line, begin)
                found = [times.get_next(datetime.datetime) for _ in range(5)]
            except Exception:  # it gives up on some lines that are due
                continue
            stamp = lambda time: str(int(time.replace(tzinfo=datetime.timezone.utc).timestamp()))
            out.write("\t".join([line, stamp(begin)] + [stamp(time) for time in found]) + "\n")


main()
