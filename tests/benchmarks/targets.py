"""What the figures have to be, and whether they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Figures = Mapping[str, Any]
TINY = (1, 10, 30, 100)


@dataclass(frozen=True)
class Target:
    """A figure with its bound; ``goal`` is what would be better still."""

    text: str
    value: float
    bound: float
    at_least: bool
    goal: float | None = None
    unit: str = "x"

    @property
    def holds(self) -> bool:
        """Whether the figure is within its bound."""
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    @property
    def verdict(self) -> str:
        """Say how it stands."""
        if not self.holds:
            return "missed"
        if self.goal is None:
            return "holds"
        reached = self.value >= self.goal if self.at_least else self.value <= self.goal
        return "holds, goal reached" if reached else "holds"


def in_process_targets(figures: Figures) -> Iterator[Target]:
    """Judge the reads in one process, on one processor; hudi-rs counts with the cheaper of its two ways."""
    for table, full, goal in (("mor_small", 2.6, 3.0), ("mor_late", 2.5, None)):
        if table not in figures["tables"]:
            continue
        ways = figures["tables"][table]["ways"]
        ours, single = ways["hoodie_py"], ways["hoodie_py, 1 processor"]
        theirs = min(ways["hudi-rs"]["cpu"], ways["hudi-rs stream"]["cpu"])
        yield Target(
            f"{table}, all columns: hudi-rs's processor time over ours", theirs / single["cpu"], full, True, goal
        )
        if table == "mor_small":
            narrow = ways["hudi-rs 3 columns"]["cpu"] / ways["hoodie_py 3 columns, 1 processor"]["cpu"]
            yield Target(f"{table}, 3 columns: hudi-rs's processor time over ours", narrow, 6.0, True, 8.0)
            base = single["cpu"] / ways["pyarrow base files, 1 processor"]["cpu"]
            yield Target(
                f"{table}, all columns: our processor time over pyarrow's on base files", base, 1.8, False, 1.5
            )
        yield Target(
            f"{table}: wall time on all processors over that on one", ours["wall"] / single["wall"], 0.6, False
        )
        for way, threads in ((single, "on one processor"), (ours, "on all processors")):
            peak = way["peak"] / ways["hudi-rs stream"]["peak"]
            text = f"{table}, batch by batch {threads}: our peak memory over hudi-rs's"
            yield Target(text, peak, 1.0, False, 0.5)
    flat = figures["flat"]["base grown"]["peak"] / figures["flat"]["base x1"]["peak"]
    yield Target(f"peak memory with {figures['bases']} times the base rows over that with one", flat, 1.1, False)
    extra = figures["imports"]["hoodie_py"] - figures["imports"]["pyarrow"]
    yield Target("import hoodie_py beyond pyarrow, processor seconds", extra, 0.15, False, None, " s")


def decoder_targets(figures: Figures) -> Iterator[Target]:
    """Judge the decoder: on all records by fastavro's dicts, on tiny blocks by fastavro's rows as Arrow."""
    by_count = {block["records"]: block["seconds"] for block in figures["blocks"]}
    whole = by_count[max(by_count)]
    yield Target(
        "all records in one block: fastavro's time over ours",
        whole["fastavro to dicts"] / whole["hoodie_py"],
        27.0,
        True,
        35.0,
    )
    tiny = min(by_count[count]["fastavro to Arrow"] / by_count[count]["hoodie_py"] for count in TINY)
    yield Target("tiny blocks, the worst: fastavro's time to an Arrow batch over ours", tiny, 1.0, True)


def encoder_targets(figures: Figures) -> Iterator[Target]:
    """Judge the encoder: on all records, by what fastavro takes from dicts that are there already."""
    seconds = max(figures["blocks"], key=lambda block: block["records"])["seconds"]
    ratio = seconds["fastavro from dicts"] / seconds["hoodie_py"]
    yield Target("all records encoded as one block: fastavro's time over ours", ratio, 10.0, True, 20.0)


def spark_targets(figures: Figures) -> Iterator[Target]:
    """Judge Spark by Java Hudi's processor time, where it was measured."""
    for table, found in figures["tables"].items():
        for query, text, bound, goal in (
            ("noop", "all columns", 3.0, 4.0),
            ("narrow", "sums of 3 columns", 3.5, 5.0),
            ("count", "count", 3.0, None),
        ):
            ways = found["queries"][query]
            if "java" in ways:
                value = ways["java"]["cpu"] / ways["read"]["cpu"]
                yield Target(
                    f"{table} in Spark, {text}: Java Hudi's processor time over ours", value, bound, True, goal
                )


def compaction_targets(figures: Figures) -> Iterator[Target]:
    """Judge compaction by Java Hudi's processor time, where it was measured, and by how it grows and prunes."""
    for table, found in figures["tables"].items():
        for codec, ways in found["codecs"].items():
            if "Java Hudi local[2]" not in ways:
                continue
            theirs = ways["Java Hudi local[2]"]["cpu"]
            for way in ("in process", "Spark local[2]"):
                text = f"{table} compacted {way}, {codec}: Java Hudi's processor time over ours"
                yield Target(text, theirs / ways[way]["cpu"], 6.0, True, 8.0)
        share = found["pruning"]["share"]
        yield Target(f"{table} compacted: share of its bytes that a filter for one key reads", share, 1 / 3, False)
    for table, scales in figures["scaling"].items():
        first, *more = scales.values()
        for figure, text in (("cpu_us_a_row", "processor time a row"), ("peak", "peak memory, one group at a time")):
            worst = max(each[figure] for each in more) / first[figure]
            groups = " and ".join(list(scales)[1:])
            yield Target(f"{table} compacted, {text}: {groups} times the file groups over 1", worst, 1.1, False)


def clustering_targets(figures: Figures) -> Iterator[Target]:
    """Judge clustering by Java Hudi's processor time, where it was measured."""
    for table, found in figures["tables"].items():
        for order, ways in found["orders"].items():
            if "Java Hudi local[2]" not in ways:
                continue
            theirs = ways["Java Hudi local[2]"]["cpu"]
            for way, bound in (("in process", 6.0), ("Spark local[2]", 4.0)):
                text = f"{table} clustered {way}, {order}: Java Hudi's processor time over ours"
                yield Target(text, theirs / ways[way]["cpu"], bound, True)


def writing_targets(figures: Figures) -> Iterator[Target]:
    """Judge writing by Java Hudi's processor time, where it was measured."""
    for operation, found in figures["operations"].items():
        ways = found["ways"]
        if "Java Hudi local[2]" in ways:
            for way in ("in process", "Spark local[2]"):
                text = f"{operation.replace('_', ' ')} {way}: Java Hudi's processor time over ours"
                yield Target(text, ways["Java Hudi local[2]"]["cpu"] / ways[way]["cpu"], 3.0, True)


def dataframes_targets(figures: Figures) -> Iterator[Target]:
    """Judge engines on top of a scan by the processor time of the scan alone."""
    ours, *engines = figures["ways"]
    for engine in engines:
        ratio = figures["ways"][engine]["cpu"] / figures["ways"][ours]["cpu"]
        yield Target(f"filter and 3 columns by {engine}: its processor time over our own scan's", ratio, 1.3, False)


def range_targets(figures: Figures) -> Iterator[Target]:
    """Judge a range by the full scan of the same table, and its requests by the files that its commits wrote."""
    for table, found in figures["tables"].items():
        full, some = found["ways"]["hoodie_py full scan"], found["ways"]["hoodie_py range"]
        name = f"{table}, {figures['of_range']} of {figures['commits']:,} commits"
        yield Target(f"{name}: processor time over that of a full scan", some["cpu"] / full["cpu"], 0.03, False)
        yield Target(f"{name}: bytes over those of a full scan", some["bytes"] / full["bytes"], 0.03, False)
        yield Target(f"{name}: requests for each file of the range", some["requests"] / found["files"], 2.0, False)
