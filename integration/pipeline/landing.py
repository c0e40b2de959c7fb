"""Make a landing zone for the pipeline: orders, and days of changes and deletes in random order.

python landing.py --to s3://lake/landing --endpoint-url http://s3:7070

Each order passes through some of the statuses. Each change is an event of its day, and the events of a day are shuffled
over some files. One event in ten arrives a day late, one in ten twice, and some orders are deleted. No event of an
order arrives on a later day than its delete, because a compaction removes the delete from the table.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Mapping
from typing import Any

import fsspec
from orders import STATUSES

CITIES = ("Lima", "Oslo", "Pune", "São Paulo")
START = 1_760_000_000_000  # milliseconds
DAY = 86_400_000

Event = dict[str, Any]


def make_events(orders: int, days: int, seed: int) -> tuple[list[Event], list[list[Event]]]:
    """Return the new orders, and the events that arrive on each day."""
    chance = random.Random(seed)
    first: list[Event] = []
    arrivals: list[list[Event]] = [[] for _ in range(days)]
    for number in range(orders):
        order = {
            "order_id": f"o-{number:05d}",
            "customer": f"c-{chance.randrange(orders // 3 + 1)}",
            "city": chance.choice(CITIES),
            "status": STATUSES[0],
            "cents": chance.randrange(100, 99_999),
            "updated_at": START + number,
        }
        first.append(order)
        for day, event in _make_changes(order, days, chance):
            arrivals[day].append(event)
    for each in arrivals:
        chance.shuffle(each)
    return first, arrivals


def _make_changes(order: Event, days: int, chance: random.Random) -> list[tuple[int, Event]]:
    """Return the events of one order, each with the day on which it arrives."""
    changes: list[tuple[int, Event]] = []
    deleted_on = chance.randrange(days) if chance.random() < 0.15 else None
    before = order
    for status in STATUSES[1 : chance.randrange(1, len(STATUSES) + 1)]:
        at = before["updated_at"] + chance.randrange(DAY // 4, DAY // 2)
        happened = min((at - START) // DAY, days - 1)
        if deleted_on is not None and happened > deleted_on:
            break
        after = {**before, "status": status, "cents": before["cents"] + chance.choice((0, 0, -100)), "updated_at": at}
        event = {"op": "u", "ts_ms": at, "before": before, "after": after}
        latest = days - 1 if deleted_on is None else deleted_on
        comes = min(happened + (chance.random() < 0.1), latest)
        changes += [(comes, event)] * (2 if chance.random() < 0.1 else 1)
        before = after
    if deleted_on is not None:
        at = max(before["updated_at"] + 1, START + deleted_on * DAY)
        changes.append((deleted_on, {"op": "d", "ts_ms": at, "before": before, "after": None}))
    return changes


def save(to: str, orders: int, days: int, seed: int, store: Mapping[str, Any]) -> int:
    """Write the landing zone and return the number of events."""
    first, arrivals = make_events(orders, days, seed)
    _write(f"{to}/day-0/orders.ndjson", first, store)
    for day, events in enumerate(arrivals, 1):
        for part in range(2):
            _write(f"{to}/day-{day}/changes-{part}.ndjson", events[part::2], store)
    return sum(map(len, arrivals))


def _write(path: str, rows: list[Event], store: Mapping[str, Any]) -> None:
    with fsspec.open(path, "wt", encoding="utf-8", auto_mkdir=True, **store) as out:
        out.writelines(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)


def main() -> None:
    """Run as the command line says."""
    parser = argparse.ArgumentParser(description="Make a landing zone for the pipeline.")
    parser.add_argument("--to", required=True, help="URI of the landing zone")
    parser.add_argument("--endpoint-url", help="of an S3-compatible server")
    parser.add_argument("--orders", type=int, default=300)
    parser.add_argument("--days", type=int, default=2)
    parser.add_argument("--seed", type=int, default=7)
    asked = parser.parse_args()
    store = {} if asked.endpoint_url is None else {"endpoint_url": asked.endpoint_url}
    events = save(asked.to, asked.orders, asked.days, asked.seed, store)
    print(f"{asked.orders} orders and {events} changes landed in {asked.to}")


if __name__ == "__main__":
    main()
