"""The page docs/benchmarks/scale.md, from the figures of the last ``make bench-scale``.

python -m tests.benchmarks.scale_report
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.benchmarks.report import FOLDER, about_lines, format_table, target_lines
from tests.benchmarks.results import saved
from tests.benchmarks.targets import Target

_WAITS = 0.4  # seconds that a write waits for other machines' clocks
Sections = dict[str, dict[str, dict[str, Any]]]
_CALLS = {
    "create_10": "create and first insert into 10 partitions",
    "create_100": "create and first insert into 100 partitions",
    "upsert": "upsert of one row",
    "delete": "delete of one key",
    "compact": "compaction of two file groups",
    "open": "open",
    "read": "read all rows of 10 partitions",
}
_INTRODUCTION = """# How cost grows

`make bench-scale` writes this page. It does not measure speed (see [the benchmarks](README.md)) but what a larger
table costs: more files, partitions, commits or rows. The tables are fabricated (`tests/benchmarks/scale_tables.py`):
their files are links to few, so that 100,000 files take a few seconds to make.

*Calls*, *bytes* and *files* are those of one run on an object store: listings of folders and other requests, bytes
read, different files opened. CPU is user and system time of another run on a disk, in a process that has imported
everything.
"""


def scale_targets(found: Sections) -> Iterator[Target]:
    """Judge growth by ratios and counts."""
    trips = found.get("round_trips", {}).get("hoodie_py", {})
    for name, most in {"create_10": 20, "create_100": 30, "upsert": 16, "delete": 16, "compact": 20, "open": 2}.items():
        if trips:
            what = f"requests to S3 in sequence, {_CALLS[name]}"
            yield Target(what, trips[f"{name}_in_sequence"], most, False, unit="")
    planning = found.get("planning", {})
    for name in ("f10k_c100", "f10k_c1000", "f100k_c100", "f100k_c1000"):
        if f"{name}, hudi-rs" in planning:
            ratio = planning[f"{name}, hudi-rs"]["cpu"] / planning[f"{name}, hoodie_py"]["cpu"]
            yield Target(f"tasks of {_name(name)}: our CPU over hudi-rs's", 1 / ratio, 1.5, False)
    misses = found.get("miss", {})
    if "hudi-rs" in misses:
        what = "a key that none of 10,000 files has: our CPU over hudi-rs's"
        yield Target(what, misses["hoodie_py"]["cpu"] / misses["hudi-rs"]["cpu"], 1.5, False)
    for figures in found.get("look_up", {}).values():
        what = "one key of a record index, 100,000 files"
        yield Target(f"{what}: calls", figures["calls"], 50, False, unit="")
        yield Target(f"{what}: bytes", figures["bytes"], 1_000_000, False, unit="")
    for way, figures in found.get("partition", {}).items():
        yield Target(f"filter for one of 10,000 partitions {way}: calls", figures["calls"], 20, False, unit="")
    upserts = found.get("upsert", {})
    for version in (9, 6):
        if f"version {version}, 10000 commits" in upserts:
            few, many = (upserts[f"version {version}, {commits} commits"] for commits in (100, 10_000))
            what = f"version {version}, one row changed after 10,000 commits"
            ratio = (many["cpu"] + _WAITS) / (few["cpu"] + _WAITS)
            yield Target(f"{what}: CPU and waits for clocks over those after 100", ratio, 2, False)
            yield Target(f"{what}: calls", many["calls"], 100, False, unit="")
            yield Target(f"{what}: bytes of a pickled task", many["task_bytes"], 64 << 10, False, unit="")
    for way, figures in found.get("small_writes", {}).items():
        first, *_, last = figures["cpu_tenths"]
        what = f"1,000 changes of one row each, {way}: CPU of the last tenth over that of the first"
        yield Target(what, last / first, 1.3, False)
    if "bulk_insert" in found:
        few, many = (each["peak"] for each in found["bulk_insert"].values())
        yield Target("bulk insert of 20 M rows from a stream: peak memory over that of 2 M", many / few, 1.3, False)


def section_lines(found: Sections) -> Iterator[str]:
    """Yield a table for each kind of work."""
    if "round_trips" in found:
        yield "## Requests to S3\n"
        yield "Requests that follow one another, and in brackets all of them. Each answer takes 20 ms, so that requests"
        yield "made at once overlap. deltalake compacts by `optimize.compact`, and opens the table for each call.\n"
        engines = found["round_trips"]
        rows = [
            [what, *(f"{figures[f'{name}_in_sequence']} ({figures[name]})" for figures in engines.values())]
            for name, what in _CALLS.items()
        ]
        yield from format_table(["", *engines], rows)
    titles = {
        "planning": "## Making the tasks of a scan\n\nFiles and commits are in the names.",
        "partition": "## A filter for one of 10,000 partitions",
        "miss": "## A key that none of 10,000 small files has\n\n`scan(filter=\"id = 'x'\")`, without an index.",
        "look_up": "## One key of a record index, in 100,000 files\n\n`scan(filter=\"id = '...'\")`; the index has a"
        " million keys in ten file groups.",
        "delete": "## Deleting a key that no file has",
        "upsert": "## Changing one row after many commits\n\nThe row's file group has a log; the commits wrote"
        " elsewhere. Wall time has the two waits of 200 ms for other machines' clocks.",
        "bulk_insert": "## Bulk insert from a stream",
    }
    for section, title in titles.items():
        if section in found:
            yield f"{title}\n"
            yield from format_table(*_columns(found[section]))
    if "small_writes" in found:
        yield "## Small changes, one after the other\n"
        yield "1,000 upserts of one row into the same file group by one `HoodieTable`, without waiting for other"
        yield "machines' clocks. Table services: compaction after five commits, clean, archival. CPU milliseconds an"
        yield "upsert, by tenths; logs are those of the file slice at the end:\n"
        rows = [
            [way, *(f"{1000 * each:.0f}" for each in figures["cpu_tenths"]), str(figures["logs"])]
            for way, figures in found["small_writes"].items()
        ]
        yield from format_table(["", *map(str, range(1, 11)), "logs"], rows)


def _columns(section: dict[str, dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    shown = {
        "tasks": ("tasks", ",d"), "calls": ("calls", ",d"), "opened": ("files", ",d"), "bytes": ("bytes", ",d"),
        "cpu": ("CPU s", ".2f"), "wall": ("wall s", ".2f"), "task_bytes": ("bytes of a task", ",d"),
    }  # fmt: skip
    names = [name for name in shown if any(name in figures for figures in section.values())]
    rows = [
        [label, *(format(figures[name], shown[name][1]) if name in figures else "" for name in names)]
        for label, figures in section.items()
    ]
    head = ["", *(shown[name][0] for name in names)]
    if any("peak" in figures for figures in section.values()):
        head.append("peak MB")
        rows = [[*row, f"{figures['peak'] / 1e6:,.0f}"] for row, figures in zip(rows, section.values(), strict=True)]
    return head, rows


def _name(name: str) -> str:
    files, commits = name.split("_")
    return f"{files[1:-1]},000 files and {int(commits[1:]):,} commits"


def main() -> int:
    """Write the page from what was measured, and print the targets."""
    figures = saved("scale")
    if figures is None:
        print("Nothing is measured yet: python -m tests.benchmarks.scale")
        return 1
    judged = list(target_lines(list(scale_targets(figures["sections"]))))
    page = [_INTRODUCTION, about_lines({**figures, "rounds": 1}), *judged, *section_lines(figures["sections"])]
    (FOLDER / "scale.md").write_text("\n".join(page).rstrip() + "\n")
    print("\n".join(judged))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
