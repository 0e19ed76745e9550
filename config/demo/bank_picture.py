#!/usr/bin/env python3
"""Draws runs of the bank, each from the report.json that it left: bank_picture.py REPORT... > docs/understand/bank.svg"""

import json
import sys

WIDTH, PANEL, MARGIN = 760, 200, 24
COLOURS = {"SIGKILL": "#c0392b", "SIGTERM": "#d68910"}


def text(x, y, words, size=13, colour="#333", anchor="start"):
    return f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" fill="{colour}" text-anchor="{anchor}">{words}</text>'


def panel(report, top):
    """One run: messages that have ended over time, and a tick for each kill."""
    left, right, bottom, high = MARGIN, WIDTH - MARGIN, top + 130, 84
    seconds = max(report["seconds"], 1)
    most = max(ended for _, ended in report["progress"])

    def x(at):
        return left + (right - left) * min(at / seconds, 1)
    points = " ".join(f"{x(at):.1f},{bottom - high * ended / most:.1f}" for at, ended in report["progress"])
    kills = report["kills"]
    parts = [
        text(left, top + 18, f'{report["store"]}: {report["transfers"]:,} transfers in {report["messages"]:,} messages, '
             f'{report["hosts"]} hosts, {seconds:,.0f} s', 15, "#111"),
        f'<line x1="{left}" y1="{bottom}" x2="{right}" y2="{bottom}" stroke="#999"/>',
        f'<polyline points="{points}" fill="none" stroke="#2471a3" stroke-width="2"/>']
    for at, what in report["events"]:
        parts.append(f'<line x1="{x(at):.1f}" y1="{bottom}" x2="{x(at):.1f}" y2="{bottom + 12}" stroke="{COLOURS[what]}"/>')
    lost = report["lost"]
    parts += [
        text(left, bottom + 30, f'{kills.get("SIGKILL", 0)} × SIGKILL', 13, COLOURS["SIGKILL"]),
        text(left + 110, bottom + 30, f'{kills.get("SIGTERM", 0)} × SIGTERM', 13, COLOURS["SIGTERM"]),
        text(left + 220, bottom + 30, f'{lost["answers"]:,} answers lost after the write' if lost else ""),
        text(left, bottom + 50, f'money: {report["opening"]:,} before, {report["closing"]:,} after; '
             f'{report["receipts"]:,} receipts, each once; '
             f'{report["refused"]:,} refused for want of money', 13, "#1e8449")]
    return parts


def main():
    reports = []
    for name in sys.argv[1:]:
        with open(name, encoding="utf-8") as file:
            reports.append(json.load(file))
    if not reports or any(report["faults"] for report in reports):
        sys.exit("bank_picture: give it reports of runs without a fault")
    height = PANEL * len(reports)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">',
             f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>']
    for number, report in enumerate(reports):
        parts += panel(report, PANEL * number)
    print("\n".join(parts + ["</svg>"]))


if __name__ == "__main__":
    main()
