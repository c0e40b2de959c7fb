"""The page docs/benchmarks/formats.md, from the figures of the last ``make bench-formats``.

python -m tests.benchmarks.formats_report
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.benchmarks.format_engines import ENGINES
from tests.benchmarks.report import FOLDER, about_lines, format_table
from tests.benchmarks.results import saved

_INTRODUCTION = """# Beside other table formats

`make bench-formats` writes this page. Compare ratios, not seconds. Every figure is the median of processes of their
own, which took turns. *CPU* is user and system time of all threads. Imports of a library's own package are not counted,
what it imports at its first call is.

The tables have 12 columns and no partitions. pyarrow and polars are the limit: they read the Parquet files of
hoodie_py's copy-on-write table, and know nothing of keys, commits and logs.
"""
_REASONS = """## Where others are faster, and why

- **Bulk writes and appends**: five meta columns in every row, two of them different texts in each; the bloom filter of
  the keys; imports of some 0.2 s at the first write, which are most of a small append.
- **Upsert of 10 % into a copy-on-write table**: the keys lie in all row groups, so the whole file is decoded, merged
  and encoded again. The merge-on-read table writes a log file instead.
- **Read all**: a scan also returns the five meta columns. polars keeps texts as views into the file's pages.
- **Two conditions**: each row group has a row that passes, so the columns of all of them are decoded, by pyarrow.
- **One key**: opening a table, its timeline and its schema, with their imports, take longer than the read itself.
"""
Jobs = dict[str, dict[str, dict[str, float]]]


def cost_lines(jobs: Jobs, figure: str, unit: float, digits: int) -> Iterator[str]:
    """Yield a table of one figure, by job and engine."""
    rows = [
        [job, *(f"{engines[name][figure] / unit:,.{digits}f}" if name in engines else "" for name in ENGINES)]
        for job, engines in jobs.items()
    ]
    yield from format_table(["", *ENGINES], rows)


def make_page(figures: dict[str, Any]) -> str:
    """Return the page's text."""
    jobs: Jobs = figures["jobs"]
    lines = [
        _INTRODUCTION,
        about_lines(figures),
        f"## CPU seconds, {figures['rows']:,} rows\n",
        *cost_lines(jobs, "cpu", 1, 2),
        _REASONS,
        "## Megabytes written\n",
        *cost_lines(
            {job: each for job, each in jobs.items() if not job.startswith(("read", "two", "one"))}, "written", 1e6, 1
        ),
        "## Megabytes of memory at most\n",
        *cost_lines(jobs, "peak", 1e6, 0),
    ]
    return "\n".join(lines).rstrip() + "\n"


def main() -> int:
    """Write the page from what was measured."""
    figures = saved("formats")
    if figures is None:
        print("Nothing is measured yet: python -m tests.benchmarks.formats")
        return 1
    (FOLDER / "formats.md").write_text(make_page(figures))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
