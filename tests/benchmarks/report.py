"""The page docs/benchmarks/README.md and its plots, from the figures of the last runs.

python -m tests.benchmarks.report
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.plots import draw_in_process, draw_spark
from tests.benchmarks.results import saved
from tests.benchmarks.targets import (
    Target,
    clustering_targets,
    compaction_targets,
    dataframes_targets,
    decoder_targets,
    encoder_targets,
    in_process_targets,
    range_targets,
    spark_targets,
    writing_targets,
)

FOLDER = Path(__file__).resolve().parent.parent.parent / "docs" / "benchmarks"
_INTRODUCTION = """# Benchmarks

`make bench` and `make bench-java` write this page.
Compare ratios, not seconds: the runs of a ratio alternated on one machine. Figures are medians.

Each way of reading runs in separate processes. A process reads the table twice. The first read, with the start of the
interpreter and all imports, is the *cold start*; the figures are those of the second. *CPU* is user and system time of
all threads. The number of rows is checked for every answer, and once for each way all sums that Java Hudi computed.

Java Hudi 1.2.0 wrote the tables (merge on read, event-time ordering, positions in the log blocks). Then they were
enlarged by copies of their file groups with new ids and keys (`tests/benchmarks/grow.py`). *mor_small* has few updates
per key and large files. *mor_late* has up to nine versions per key, which arrive out of order, in many small files.
"""
_WAYS = (
    ("hoodie_py", "hudi-rs"),
    ("hoodie_py, 1 processor", "hudi-rs"),
    ("hoodie_py to_arrow", "hudi-rs"),
    ("hoodie_py by keys", "hudi-rs"),
    ("hudi-rs", "hudi-rs"),
    ("hudi-rs stream", "hudi-rs"),
    ("pyarrow base files, 1 processor", "hudi-rs"),
    ("hoodie_py 3 columns", "hudi-rs 3 columns"),
    ("hoodie_py 3 columns, 1 processor", "hudi-rs 3 columns"),
    ("hudi-rs 3 columns", "hudi-rs 3 columns"),
    ("hoodie_py count", None),
)
_QUERIES = {"noop": "all columns", "narrow": "sums of 3 columns", "count": "count"}
_READERS = {
    "read": "hoodie_py.spark.read",
    "format": 'format("hoodie")',
    "java": "Java Hudi",
    "parquet": "Spark's Parquet reader, base files alone",
    "read, local[1]": "hoodie_py.spark.read, one processor",
}


def format_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


def about_lines(figures: dict[str, Any]) -> str:
    about = figures["about"]
    machine = about["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    return (
        f"{about['date']}, {machine['processors']} processors ({machine['processor']}), {machine['memory']}, "
        f"{machine['system']}, Python {machine['python']}; {versions}. {figures['rounds']} rounds; load of the machine "
        f"{about['load'][0]} before and {about['load'][1]} after.\n"
    )


def _megabytes(count: float) -> str:
    return f"{count / 1e6:,.0f}"


def in_process_lines(figures: dict[str, Any]) -> Iterator[str]:
    """Yield the section about reading in one process."""
    yield f"## In one process\n\n{about_lines(figures)}"
    yield "![processor time in one process](in_process.svg)\n"
    for name, table in figures["tables"].items():
        ways = table["ways"]
        base, logs = table["bytes"]
        yield (
            f"*{name}*: {table['rows']:,} rows; {table['files'][0]} base files ({_megabytes(base)} MB), "
            f"{table['files'][1]} log files ({_megabytes(logs)} MB).\n"
        )
        yield from format_table(
            ("way", "CPU s", "min-max", "hudi-rs's CPU is", "wall s", "peak MB", "cold start CPU s"),
            (_way(way, ways, peer) for way, peer in _WAYS),
        )
        for way, said in table["wrong"].items():
            yield f"The answer of {way} is wrong: {'; '.join(said)}.\n"
    flat = figures["flat"]
    small, large = (flat[name]["peak"] for name in ("base x1", "base grown"))
    yield (
        f"Peak memory of a stream over the same logs with {figures['bases']} times the base rows: "
        f"{_megabytes(large)} MB instead of {_megabytes(small)} MB, {large / small:.2f} times as much.\n"
    )


def _way(way: str, ways: dict[str, dict[str, float]], peer: str | None) -> tuple[str, ...]:
    this = ways[way]
    cpu, *others = _beside(this, None if peer is None else ways[peer])
    return way, cpu, f"{this['least_cpu']:.2f}-{this['most_cpu']:.2f}", *others, f"{this['cold_cpu']:.2f}"


def _beside(this: dict[str, float], peer: dict[str, float] | None) -> tuple[str, str, str, str]:
    """Return processor seconds, how many times that a peer takes, wall seconds and peak memory."""
    ratio = "" if peer is None else f"{peer['cpu'] / this['cpu']:.2f} times"
    return f"{this['cpu']:.2f}", ratio, f"{this['wall']:.2f}", _megabytes(this["peak"])


def decoder_lines(figures: dict[str, Any]) -> Iterator[str]:
    """Yield the section about the decoder."""
    yield f"## Decoding log blocks\n\n{about_lines(figures)}"
    yield "Records of *mor_small* (22 columns), in blocks of the given number; the last line has all in one block."
    yield "Each way runs in separate processes, which repeat a call for a quarter of a second; figures are medians."
    yield "Our decoder reads a block directly from the bytes of a file.\n"
    yield from _blocks(figures)


def encoder_lines(figures: dict[str, Any]) -> Iterator[str]:
    """Yield the section about the encoder."""
    yield f"## Encoding log blocks\n\n{about_lines(figures)}"
    yield "The same records, from Arrow to the bytes of a block; fastavro starts from dicts, or makes dicts first.\n"
    yield from _blocks(figures)


def _blocks(figures: dict[str, Any]) -> Iterator[str]:
    """Yield a table of blocks: our speed, and what the other ways take."""
    _, *others = figures["blocks"][0]["seconds"]
    rows = []
    for block in figures["blocks"]:
        ours, *theirs = block["seconds"].values()
        times = [f"{each / ours:.2f} times" for each in theirs]
        rows.append((f"{block['records']:,}", f"{block['records'] / ours:,.0f}", *times))
    yield from format_table(("records", "records/s of CPU", *(f"{way} takes" for way in others)), rows)


def spark_lines(figures: dict[str, Any]) -> Iterator[str]:
    """Yield the section about Spark."""
    yield f"## In Spark\n\n{about_lines(figures)}"
    yield (
        "CPU is that of the JVM and all Python workers, from opening the table to the result, in warm sessions of "
        "local[2] with 4 GB of driver memory, without the start of the session. Peak memory is the sum over all "
        "processes, which keep memory between queries; one session serves all readers except Java Hudi. "
        "`hoodie_py.spark.read` reads the columns of the sums, or one column for the count; the format reads all.\n"
    )
    yield "![processor time in Spark](spark.svg)\n"
    for name, table in figures["tables"].items():
        yield f"*{name}*, {table['rows']:,} rows:\n"
        rows = []
        for query, ways in table["queries"].items():
            peer = "java" if "java" in ways else FLOOR
            for way, this in ways.items():
                rows.append((_QUERIES[query], _READERS[way], *_beside(this, ways[peer])))
        whose = "Java Hudi's CPU is" if "java" in table["queries"]["noop"] else "the Parquet reader's CPU is"
        yield from format_table(("query", "reader", "CPU s", whose, "wall s", "peak MB"), rows)
        for way, said in table["wrong"].items():
            yield f"The answer of {_READERS[way]} is wrong: {'; '.join(said)}.\n"


def _before(figures: dict[str, Any]) -> str:
    return "compacted a small table" if figures.get("warm") else "started its workers and answered a small query"


def compaction_lines(figures: dict[str, Any]) -> Iterator[str]:
    """Yield the section about compaction."""
    yield f"## Compaction\n\n{about_lines(figures)}"
    yield (
        "CPU is that of planning and running a compaction, in a separate process without its imports, or in the JVM "
        f"and all Python workers after the session has {_before(figures)}. Every run compacts a new copy, whose rows "
        "are checked afterwards. Java Hudi runs once.\n"
    )
    for name, table in figures["tables"].items():
        yield f"*{name}*, {table['rows']:,} rows:\n"
        rows = []
        for codec, ways in table["codecs"].items():
            theirs = ways.get("Java Hudi local[2]")
            for way, this in ways.items():
                rows.append((codec, way, *_beside(this, theirs), _megabytes(this["written"])))
        head = ("codec", "way", "CPU s", "Java Hudi's CPU is", "wall s", "peak MB", "MB written")
        yield from format_table(head, rows)
        for way, said in table["wrong"].items():
            yield f"The rows after compacting with {way} are wrong: {'; '.join(said)}.\n"
        yield f"A filter for one record key then reads {table['pruning']['share']:.0%} of the table's bytes.\n"
    for name, scales in figures["scaling"].items():
        yield f"*{name}* with more file groups, one at a time:\n"
        scaled = [
            (f"{groups} times", f"{each['rows']:,}", f"{each['cpu_us_a_row']:.2f}", _megabytes(each["peak"]))
            for groups, each in scales.items()
        ]
        yield from format_table(("file groups", "rows", "CPU us a row", "peak MB"), scaled)


def clustering_lines(figures: dict[str, Any]) -> Iterator[str]:
    """Yield the section about clustering."""
    yield f"## Clustering\n\n{about_lines(figures)}"
    yield (
        "All file groups with their log files become few, as they lie or sorted by a text column, zstd. CPU is that of "
        "planning and running, in a separate process without its imports, or in the JVM and all Python workers after "
        "the session has clustered a small table. Every run clusters a new copy, whose rows are checked afterwards. "
        "Java Hudi runs once.\n"
    )
    for name, table in figures["tables"].items():
        yield f"*{name}*, {table['rows']:,} rows:\n"
        rows = []
        for order, ways in table["orders"].items():
            theirs = ways.get("Java Hudi local[2]")
            for way, this in ways.items():
                rows.append((order, way, *_beside(this, theirs), _megabytes(this["written"])))
        yield from format_table(
            ("order", "way", "CPU s", "Java Hudi's CPU is", "wall s", "peak MB", "MB written"), rows
        )
        for way, said in table["wrong"].items():
            yield f"The rows after clustering with {way} are wrong: {'; '.join(said)}.\n"


def writing_lines(figures: dict[str, Any]) -> Iterator[str]:
    """Yield the section about writing."""
    yield f"## Writing\n\n{about_lines(figures)}"
    yield (
        "An upsert of a tenth of the keys of *mor_small* into a new copy, and a bulk insert into a new table, from a "
        "Parquet file, zstd. CPU is that of the call, in a separate process without its imports, or in the JVM and all "
        "Python workers after the session has done the same with a small table. Sums are checked afterwards.\n"
    )
    rows = []
    for operation, found in figures["operations"].items():
        theirs = found["ways"].get("Java Hudi local[2]")
        for way, this in found["ways"].items():
            rows.append((operation.replace("_", " "), f"{found['rows']:,}", way, *_beside(this, theirs)))
    yield from format_table(("operation", "rows", "way", "CPU s", "Java Hudi's CPU is", "wall s", "peak MB"), rows)
    for operation, found in figures["operations"].items():
        for way, said in found["wrong"].items():
            yield f"The rows after {operation} by {way} are wrong: {'; '.join(said)}.\n"


def range_lines(figures: dict[str, Any]) -> Iterator[str]:
    """Yield the section about queries over a range of commits."""
    yield f"## Ranges of commits\n\n{about_lines(figures)}"
    yield (
        f"{figures['of_range']} of {figures['commits']:,} commits, from the middle of the timeline. Every commit wrote "
        "ten files: new file groups, and changes of old ones (`tests/benchmarks/history_tables.py`); all are on the "
        "active timeline. Requests, bytes and objects are those of one read in a new process, from an S3 server that "
        "counts them. The range has 1% of all files, but those of *history_mor* are in nearly 5% of its file groups, "
        "and every group has a cost of its own.\n"
    )
    for name, table in figures["tables"].items():
        yield f"*{name}*: {table['rows']:,} rows; the range's commits wrote {table['files']} files.\n"
        rows = []
        for way, this in table["ways"].items():
            full = table["ways"][f"{way.split()[0]} full scan"]
            rows.append(
                (
                    way,
                    f"{this['cpu']:.3f}",
                    f"{this['cpu'] / full['cpu']:.1%}",
                    f"{this['wall']:.3f}",
                    f"{this['cold_cpu']:.2f}",
                    _megabytes(this["peak"]),
                    f"{this['requests']:,}",
                    f"{this['bytes'] / 1e6:,.1f}",
                    f"{this['bytes'] / full['bytes']:.1%}",
                    f"{this['objects']:,}",
                )
            )
        head = (
            "way", "CPU s", "of its full scan's", "wall s", "cold start CPU s", "peak MB", "requests", "MB read",
            "of its full scan's", "objects",
        )  # fmt: skip
        yield from format_table(head, rows)
        yield f"`hoodie read --from --to --format parquet`, from start to end: {table['command']:.2f} s of CPU.\n"
        for way, said in table["wrong"].items():
            yield f"The answer of {way} is wrong: {'; '.join(said)}.\n"


def dataframes_lines(figures: dict[str, Any]) -> Iterator[str]:
    """Yield the section about dataframe libraries and SQL engines."""
    yield f"## Data frames\n\n{about_lines(figures)}"
    yield (
        f"`{figures['filter']}` and 3 of 22 columns of *{figures['table']}*, which keeps {figures['kept']:,} of "
        f"{figures['rows']:,} rows, as an Arrow table: asked of the library, which pushes both down to our scan, and "
        "of our scan itself. The table is opened anew each time.\n"
    )
    ours = figures["ways"]["hoodie_py"]["cpu"]
    rows = [
        (
            "hoodie_py alone" if way == "hoodie_py" else way,
            f"{this['cpu']:.2f}",
            f"{this['least_cpu']:.2f}-{this['most_cpu']:.2f}",
            f"{this['cpu'] / ours:.2f} times",
            f"{this['wall']:.2f}",
            _megabytes(this["peak"]),
            f"{this['cold_cpu']:.2f}",
        )
        for way, this in figures["ways"].items()
    ]
    head = ("way", "CPU s", "min-max", "of our own scan's", "wall s", "peak MB", "cold start CPU s")
    yield from format_table(head, rows)
    for way, said in figures["wrong"].items():
        yield f"The answer of {way} is wrong: {'; '.join(said)}.\n"


FLOOR = "parquet"
_SECTIONS = (
    ("in_process", in_process_lines, in_process_targets, draw_in_process),
    ("dataframes", dataframes_lines, dataframes_targets, None),
    ("ranges", range_lines, range_targets, None),
    ("decoder", decoder_lines, decoder_targets, None),
    ("encoder", encoder_lines, encoder_targets, None),
    ("spark", spark_lines, spark_targets, draw_spark),
    ("compaction", compaction_lines, compaction_targets, None),
    ("clustering", clustering_lines, clustering_targets, None),
    ("writing", writing_lines, writing_targets, None),
)


def target_lines(targets: Sequence[Target]) -> Iterator[str]:
    """Yield the section that says which targets hold."""
    yield "## Targets\n"
    rows = []
    for target in targets:
        sign = "at least" if target.at_least else "at most"
        goal = "" if target.goal is None else f"{target.goal:g}"
        rows.append(
            (
                target.text,
                f"{target.value:.{2 if target.value >= 10 else 3}f}{target.unit}",
                f"{sign} {target.bound:g}",
                goal,
                target.verdict,
            )
        )
    yield from format_table(("figure", "measured", "target", "goal", ""), rows)


def main() -> int:
    """Write the page from what was measured, and print the targets."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    sections: list[str] = []
    targets: list[Target] = []
    for name, lines, judge, draw in _SECTIONS:
        figures = saved(name)
        if figures is None:
            continue
        sections += lines(figures)
        targets += judge(figures)
        if draw is not None:
            draw(figures, FOLDER / f"{name}.svg")
    judged = list(target_lines(targets))
    (FOLDER / "README.md").write_text("\n".join([_INTRODUCTION, *judged, *sections]).rstrip() + "\n")
    print("\n".join(judged))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
