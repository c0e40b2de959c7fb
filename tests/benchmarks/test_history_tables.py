"""Tables of many commits have the rows that their makers say, and the server that shows them counts what it gives."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from hoodie_py import HoodieTable
from tests.benchmarks.checksums import sums_of
from tests.benchmarks.counting_s3 import BUCKET, counting_s3
from tests.benchmarks.history_tables import FILES_A_COMMIT, SHAPES, make_history


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=() if each == "history_mor" else pytest.mark.thorough) for each in sorted(SHAPES)]
)
def test_scan_and_range_have_the_rows_that_were_written(name: str, tmp_path: Path) -> None:
    shape = replace(SHAPES[name], commits=100, rows=12, changed=3)
    made = make_history(shape, name, tmp_path / "t")
    table = HoodieTable.open(made.path)
    assert sums_of(name, table.scan(integrity="strict").to_batches()) == made.expected
    assert sums_of(name, table.incremental(made.start, made.end).to_batches()) == made.expected_of_range
    if shape.captures_changes:
        assert table.changes(made.start, made.end).count() == made.changes
    written = [path for path in made.path.glob("region-*/*") if not path.name.startswith(".hoodie")]
    written = [path for path in written if path.suffix != ".cdc"]
    assert len(written) == shape.commits * FILES_A_COMMIT


def test_server_counts_requests_and_bytes(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for number in range(1001):
        (tmp_path / "a" / f"{number:04}").write_bytes(b"0123456789")
    with counting_s3(tmp_path) as server:
        place = f"{server.env['AWS_ENDPOINT_URL']}/{BUCKET}"
        with server.count() as traffic:
            assert urlopen(Request(f"{place}/a/0001", headers={"Range": "bytes=2-4"})).read() == b"234"
            assert urlopen(f"{place}/a/0002").read() == b"0123456789"
            assert urlopen(Request(f"{place}/a/0003", method="HEAD")).headers["Content-Length"] == "10"
            with pytest.raises(HTTPError, match="404"):
                urlopen(f"{place}/../counting_s3.py")
        assert traffic.requests == Counter(GET=3, HEAD=1)
        assert traffic.objects == {"a/0001", "a/0002"}
        assert traffic.bytes == 13 + len(b"<Error><Code>NoSuchKey</Code><Message>NoSuchKey</Message></Error>")
        with server.count() as traffic:
            listing = urlopen(f"{place}/?list-type=2&prefix=a/&delimiter=/").read()
        assert traffic.bytes == len(listing)
        assert listing.count(b"<Key>") == 1000
        assert b"<NextContinuationToken>a/0999</NextContinuationToken>" in listing
        rest = urlopen(f"{place}/?list-type=2&prefix=a/&delimiter=/&continuation-token=a/0999").read()
        assert rest.count(b"<Key>") == 1
