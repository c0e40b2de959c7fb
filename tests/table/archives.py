"""Archives instants of a table by hand, as Java's archiver leaves them: out of the timeline, into the history."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie_py import HoodieTable, Instant
from hoodie_py.formats.config.table_config import TableConfig
from tests.formats.avro_writing import encode, record_schema
from tests.formats.log_writer import block, raw_data

_TEXT = ["null", "string"]
_ENTRY = record_schema("HoodieArchivedMetaEntry", commitTime=_TEXT, actionType=_TEXT, actionState=_TEXT)


def archive(base: Path, times: Collection[str]) -> None:
    """Archive the completed writes requested at ``times``."""
    table = HoodieTable.open(base)
    folder, layout = base / table.config.find_timeline_folder(), table.config.timeline_layout
    instants = [each for each in table.timeline if each.request_time in times]
    assert [each.request_time for each in instants] == sorted(times)
    add_to_archive(
        base,
        table.config,
        instants,
        [(folder / each.file_name(layout)).read_bytes() for each in instants],
    )
    for each in instants:
        for path in folder.glob(f"{each.request_time}*"):
            if path.is_file():
                path.unlink()


def add_to_archive(
    base: Path, config: TableConfig, instants: Sequence[Instant], contents: Sequence[bytes] | None = None
) -> None:
    """Add completed instants to the archive and leave the timeline as it is; ``contents``: of their files."""
    history = base / config.find_history_folder()
    history.mkdir(parents=True, exist_ok=True)
    number = len(list(history.glob("*")))
    if config.timeline_layout == 1:
        entries = [
            encode(_ENTRY, {"commitTime": each.request_time, "actionType": each.action, "actionState": "COMPLETED"})
            for each in instants
        ]
        schema = json.dumps(_ENTRY)
        data = block(3, {2: schema}, raw_data(entries))
        (history / f".commits_.archive.{number + 1}_1-0-1").write_bytes(data)
    else:
        rows = {
            "instantTime": [each.request_time for each in instants],
            "completionTime": [each.completion_time for each in instants],
            "action": [each.action for each in instants],
            "metadata": contents or [b"{}"] * len(instants),
            "plan": pa.nulls(len(instants), pa.binary()),
            "version": pa.array([1] * len(instants), pa.int32()),
        }
        name = f"{instants[0].request_time}_{instants[-1].request_time}_0.parquet"
        pq.write_table(pa.table(rows), history / name)
        names = sorted(path.name for path in history.glob("*.parquet"))
        files = [{"fileName": each, "fileLen": (history / each).stat().st_size} for each in names]
        (history / f"manifest_{number + 1}").write_text(json.dumps({"files": files}))
        (history / "_version_").write_text(str(number + 1))
