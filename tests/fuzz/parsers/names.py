"""Names of instants, base files, log files, archives and partitions."""

from __future__ import annotations

from contextlib import suppress

from hoodie_py.errors import HoodieError
from hoodie_py.formats import names
from hoodie_py.formats.timeline import archive
from hoodie_py.formats.timeline.timeline import Timeline, parse_instant_file
from tests.fuzz.seeds import all_files

FIELDS = ((), ("a",), ("a", "b"), ("a", "b", "c"))
EXAMPLES = (b"a=1/b=x%2Fy", b"2026/01/31", b"__HIVE_DEFAULT_PARTITION__", b"file:///etc/passwd", b"../x", b"s3://b/k")


def seeds() -> list[bytes]:
    """The paths of all real files, with their last segments."""
    paths = {path for _, path, _ in all_files(lambda path: True)}
    found = sorted(paths)[::7] + sorted({path.rpartition("/")[2] for path in paths})[::5]
    return [text.encode() for text in found[:150]] + list(EXAMPLES)


def parse(data: bytes) -> None:
    """Take a text apart as every kind of name; what comes out must spell the name again."""
    text = data.decode("utf-8", "surrogateescape")
    for layout in (1, 2):
        found = parse_instant_file(text, layout)
        if found is not None:
            again = parse_instant_file(found.instant.file_name(layout), layout)
            assert again is not None
            assert again.instant == found.instant
            assert len(Timeline.from_file_names([text], layout)) == 1
    log = names.parse_log_file_name(text)
    assert log is None or names.parse_log_file_name(log.name) == log
    archive.parse_archive_file_name(text)
    archive.parse_manifest_name(text)
    archive.parse_history_file_name(text)
    with suppress(HoodieError):
        base = names.parse_base_file_name(text)
        assert base is None or base.name == text
    with suppress(HoodieError):
        assert "/" not in names.find_file_name(text)
    with suppress(HoodieError):
        inside = names.check_inside(text)
        for fields in FIELDS:
            values = names.split_partition_path(inside, fields)
            assert values is None or len(values) == len(fields)
    assert names.unescape_partition_value(names.escape_partition_value(text)) == text
