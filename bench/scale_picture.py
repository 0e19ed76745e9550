#!/usr/bin/env python3
"""Draws what scale_bench has measured: scale_picture.py FILE.json > docs/understand/scale.svg"""

import json
import math
import sys

WIDTH, HEIGHT, MARGIN = 760, 760, 60
BLUE, GREEN, RED, GREY = "#2471a3", "#1e8449", "#c0392b", "#999"


def text(x, y, words, size=13, colour="#333", anchor="start"):
    return f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" fill="{colour}" text-anchor="{anchor}">{words}</text>'


def line(x1, y1, x2, y2, colour=GREY, more=""):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" {more}/>'


def bars(rows, by, title, left, top, width):
    """Messages a second, by how many hosts or shards there are."""
    bottom, high, most = top + 170, 120, max(row["per_second"] for row in rows)
    step = width / len(rows)
    parts = [text(left, top + 18, title, 15, "#111"), line(left, bottom, left + width, bottom)]
    for number, row in enumerate(rows):
        tall = high * row["per_second"] / most
        x = left + number * step
        parts += [
            f'<rect x="{x + 4:.1f}" y="{bottom - tall:.1f}" width="{step - 8:.1f}" height="{tall:.1f}" fill="{BLUE}"/>',
            text(x + step / 2, bottom - tall - 4, f'{row["per_second"]:,.0f}', 10, "#333", "middle"),
            text(x + step / 2, bottom + 16, row[by], 12, "#333", "middle")]
    return parts + [text(left + width / 2, bottom + 34, by, 12, "#333", "middle")]


def latencies(rows, top):
    """Send to handler, on a scale of powers of ten."""
    left, width = MARGIN + 110, WIDTH - 2 * MARGIN - 110
    parts = [text(MARGIN, top + 18, "send to handler at half load: 8 hosts, 64 shards, 3,200 a second", 15, "#111")]

    def x(ms):
        return left + width * min(1, math.log10(max(ms, 1)) / 4)
    for ms in (1, 10, 100, 1000):
        parts += [line(x(ms), top + 36, x(ms), top + 104, "#ddd"), text(x(ms), top + 118, f"{ms:,} ms", 11, "#333", "middle")]
    for number, row in enumerate(rows):
        y = top + 54 + 34 * number
        parts += [text(MARGIN, y + 4, "doorbell" if row["doorbell"] else "no doorbell"),
                  line(x(row["p50_ms"]), y, x(row["p99_ms"]), y, BLUE, 'stroke-width="3"')]
        for name, colour, anchor in (("p50", GREEN, "end"), ("p99", RED, "start")):
            ms = row[name + "_ms"]
            parts += [f'<circle cx="{x(ms):.1f}" cy="{y}" r="5" fill="{colour}"/>',
                      text(x(ms), y - 9, f"{name} {ms:,.0f} ms", 11, colour, anchor)]
    return parts


def life(row, events, title, top):
    """Handlers that began in each tenth of a second."""
    left, right, bottom, high = MARGIN, WIDTH - MARGIN, top + 140, 96
    ticks = row["per_tick"]
    most = max(ticks)
    points = " ".join(f"{left + (right - left) * i / len(ticks):.1f},{bottom - high * count / most:.1f}"
                      for i, count in enumerate(ticks))
    parts = [text(left, top + 18, title, 15, "#111"), line(left, bottom, right, bottom),
             text(left - 6, bottom - high + 4, f"{most * 10:,}", 11, "#333", "end"), text(left - 6, bottom + 4, "0", 11, "#333", "end"),
             f'<polyline points="{points}" fill="none" stroke="{BLUE}" stroke-width="1.5"/>']
    for second, what in events:
        x = left + (right - left) * second / row["seconds"]
        parts += [line(x, bottom - high, x, bottom + 10, RED, 'stroke-dasharray="3,3"'),
                  text(x, bottom + 24, f"{second} s: {what}", 11, RED, "middle")]
    return parts


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        rows = json.load(file)

    def scene(name):
        return [row for row in rows if row["scene"] == name]
    half = (WIDTH - 2 * MARGIN - 40) / 2
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>']
    parts += bars(scene("hosts"), "hosts", "messages a second, 64 shards", MARGIN, 0, half)
    parts += bars(scene("shards"), "shards", "messages a second, 8 hosts", MARGIN + half + 40, 0, half)
    parts += latencies(scene("latency"), 225)
    parts += life(scene("lives")[0], [(5, "one dies"), (20, "one joins"), (30, "one freezes for 5 s")],
                  "handlers begun a second: 8 hosts, 64 shards, 2,000 a second sent", 375)
    parts += life(scene("rolling")[0], [(second, "one leaves") for second in (2, 8, 14, 20)],
                  "the same while 4 hosts are replaced: 16 shards, 1,000 a second sent", 580)
    print("\n".join(parts + ["</svg>"]))


if __name__ == "__main__":
    main()
