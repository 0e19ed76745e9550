"""The bank's books: what must hold at the end, and how it is shown. No I/O."""

import collections

OPENING = 1000


def account(number):
    return f"acct-{number:03}"


def faults(accounts, sent, receipts, dead, balances, rejected):
    """What does not add up, one line each. `dead`: (transfer, its record as text) of each dead letter; `rejected`: what the
    error of each of them has to name."""
    found = []
    by_name = {transfer["transfer"]: transfer for transfer in sent}
    counts = collections.Counter(receipt["transfer"] for receipt in receipts)
    for name, count in sorted(counts.items()):
        if count != 1:
            found.append(f"transfer {name} has {count} receipts")
        if name not in by_name:
            found.append(f"nobody has sent transfer {name}, which has a receipt")
    refused = {name for name, _ in dead}
    for name in sorted(set(by_name) - set(counts) - refused):
        found.append(f"transfer {name} has neither a receipt nor a refusal")
    for name, record in dead:
        if rejected not in record:
            found.append(f"transfer {name} was given up for another reason: {record}")
    # Each receipt applied once, and nothing else, leads to these balances.
    expected = {account(number): OPENING for number in range(accounts)}
    for receipt in receipts:
        expected[receipt["from"]] -= receipt["amount"]
        expected[receipt["to"]] += receipt["amount"]
    for name in sorted(set(expected) | set(balances)):
        if expected.get(name) != balances.get(name):
            found.append(f"account {name} has {balances.get(name)}, and by its receipts {expected.get(name)}")
    if any(balance < 0 for balance in balances.values()):
        found.append("an account is overdrawn")
    if sum(balances.values()) != accounts * OPENING:
        found.append(f"{accounts * OPENING:,} were paid in, and {sum(balances.values()):,} are there")
    return found


def text(report):
    """The end of a run, for people."""
    kills = report["kills"]
    lines = [
        f"the bank on {report['store']}, {report['seconds']:,} s",
        f"  transfers  {report['transfers']:,} in {report['messages']:,} messages: "
        f"{report['messages'] - report['transfers']:,} were sent twice",
        f"  receipts   {report['receipts']:,}, and {report['refused']:,} messages refused for want of money",
        f"  hosts      {report['hosts']}, killed {kills.get('SIGKILL', 0):,} times by SIGKILL and "
        f"{kills.get('SIGTERM', 0):,} times by SIGTERM",
    ]
    if report["lost"]:
        lines.append(f"  answers    {report['lost']['answers']:,} lost after the write, "
                     f"{report['lost']['transactions']:,} of them of transactions")
    lines += [f"  money      {report['opening']:,} before, {report['closing']:,} after"]
    lines += [f"  FAULT      {fault}" for fault in report["faults"][:20]]
    if not report["faults"]:
        lines.append("  each transfer was applied once, each receipt is there once, not a cent is lost")
    return "\n".join(lines)
