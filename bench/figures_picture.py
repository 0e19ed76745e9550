#!/usr/bin/env python3
"""Draws docs/understand/figures.svg; the numbers are those of docs/understand/figures.md and docs/run/tables.md."""

PANELS = (
    ("messages a second, two cores", "{:,.0f}", (
        ("SQLite: send (command)", 98_000), ("SQLite: work off (command)", 59_000), ("outbox, PostgreSQL to NATS", 22_600),
        ("DynamoDB, leased (emulator)", 7_250), ("DynamoMQ's table (emulator)", 1_680))),
    ("dollars for a million messages", "{:.2f}", (
        ("SQLite", 0), ("SQS, ten a request, without Lambda", 0.12), ("SQS, one a request, without Lambda", 1.20),
        ("DynamoDB, leased", 1.28), ("DynamoMQ's table, at best", 3.76))),
)
ROW, LABEL, BAR = 22, 230, 400


def main():
    height = sum(44 + ROW * len(rows) for _, _, rows in PANELS)
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LABEL + BAR + 80} {height}" font-family="sans-serif" font-size="13">')
    print(f'<rect width="{LABEL + BAR + 80}" height="{height}" fill="#fff"/>')
    y = 0
    for title, form, rows in PANELS:
        y += 24
        print(f'<text x="10" y="{y}" font-size="15">{title}</text>')
        most = max(value for _, value in rows)
        for name, value in rows:
            y += ROW
            width = BAR * value / most
            print(f'<text x="{LABEL - 8}" y="{y}" text-anchor="end" fill="#333">{name}</text>')
            print(f'<rect x="{LABEL}" y="{y - 12}" width="{width:.1f}" height="15" fill="#2471a3"/>')
            print(f'<text x="{LABEL + width + 6:.1f}" y="{y}" fill="#333">{form.format(value)}</text>')
        y += 20
    print("</svg>")


if __name__ == "__main__":
    main()
