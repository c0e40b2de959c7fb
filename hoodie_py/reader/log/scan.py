"""Scans the log files of one file slice: which blocks count, and in what order (Hudi's BaseHoodieLogRecordReader).

Front to back, blocks after the query instant are skipped, and before table version 8 also blocks of uncommitted
instants. A rollback block removes the blocks of its target seen so far; any other command is an error. The other blocks
are grouped by instant in order of first appearance. Then, back to front, a log-compacted block takes the place of the
newest of its sources and replaces all of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from hoodie_py.errors import CorruptFileError, FileMissingError, HoodieError, HoodieWarning
from hoodie_py.files import TableFiles, find_named_files
from hoodie_py.formats.log.framing import BlockType, CorruptBlock, iterate_blocks
from hoodie_py.reader.file_slice import BlockRules, LogFile
from hoodie_py.reader.log.log_files import OpenLog, ScannedBlock, open_logs
from hoodie_py.reader.memory.spill import Spill
from hoodie_py.reader.read_info import CommittedFiles, ReadStats

_DATA = (BlockType.AVRO_DATA, BlockType.PARQUET_DATA, BlockType.HFILE_DATA, BlockType.DELETE)
_Blocks = dict[str, list[ScannedBlock]]  # by instant, instants in order of first appearance


def scan_log_files(
    files: TableFiles,
    log_files: Sequence[LogFile],
    rules: BlockRules,
    stats: ReadStats,
    spill: Spill,
    *,
    strict: bool = False,
    committed: CommittedFiles | None = None,
) -> list[ScannedBlock]:
    """Return the blocks to merge, oldest first, of log files in read order.

    A corrupt block is skipped with a warning, as in Hudi; with ``strict`` it is an error. ``committed``: knows which
    missing files counted; up to table version 6 a rollback deletes log files of a slice, whose blocks did not count.

    Raises:
        FileMissingError: a file that counts is missing.
        CorruptFileError: bytes that are no log file; with ``strict`` any corrupt block.
        UnsupportedFeatureError: a block, log format version or command that is not supported.
    """
    while True:
        # Each attempt counts anew.
        stats.blocks = stats.skipped_blocks = stats.corrupt_blocks = stats.rollback_blocks = stats.log_bytes = 0
        try:
            return _place_compacted_blocks(
                _scan_files(files, log_files, rules, stats, spill, strict), originals=rules.originals
            )
        except FileMissingError:
            there = _find_files_left(files, log_files, committed)
            if there is None:
                raise
            log_files = there


def _scan_files(
    files: TableFiles, log_files: Sequence[LogFile], rules: BlockRules, stats: ReadStats, spill: Spill, strict: bool
) -> _Blocks:
    collected: _Blocks = {}
    for log in open_logs(files, log_files, spill):
        try:
            _scan_file(log, rules, stats, collected, strict)
        except HoodieError as error:
            error.locate(path=log.path)
            raise
    return collected


def _find_files_left(
    files: TableFiles, log_files: Sequence[LogFile], committed: CommittedFiles | None
) -> list[LogFile] | None:
    """Return the log files that exist; None if a missing one counts, or if none is missing."""
    if committed is None:
        return None
    there = find_named_files(files, [log.path for log in log_files])
    missing = [log for log in log_files if log.path not in there]
    if not missing or committed.find_committed(missing):
        return None
    return [log for log in log_files if log.path in there]


def _scan_file(log: OpenLog, rules: BlockRules, stats: ReadStats, collected: _Blocks, strict: bool) -> None:
    """Collect the blocks of one file. On return its bytes are free, unless a block needs them."""
    data = log.read()
    stats.log_bytes += len(data)
    for block in iterate_blocks(data):
        stats.blocks += 1
        if isinstance(block, CorruptBlock):
            _report_corrupt(block, log.path, stats, strict)
        else:
            _collect(collected, log.make_scanned(block), rules, stats)


def _collect(collected: _Blocks, scanned: ScannedBlock, rules: BlockRules, stats: ReadStats) -> None:
    block = scanned.block
    if block.is_rollback:
        stats.rollback_blocks += 1
        target = block.target_instant_time
        if target is None:
            raise CorruptFileError("A rollback block names no instant.", offset=block.offset)
        # A rollback block comes after the blocks that it undoes, so these are already collected.
        collected.pop(target, None)
    elif block.type not in _DATA:
        stats.skipped_blocks += 1
    elif rules.accepts(scanned.instant) and _is_of_range(scanned, rules):
        collected.setdefault(scanned.instant, []).append(scanned)
    else:
        stats.skipped_blocks += 1


def _is_of_range(scanned: ScannedBlock, rules: BlockRules) -> bool:
    is_parquet = scanned.block.type is BlockType.PARQUET_DATA
    return rules.parquet is None or not is_parquet or rules.parquet.contains(scanned.instant)


def _report_corrupt(block: CorruptBlock, path: str, stats: ReadStats, strict: bool) -> None:
    stats.corrupt_blocks += 1
    if strict:
        raise CorruptFileError(
            f"A corrupt log block: {block.reason}.",
            offset=block.offset,
            end=block.end,
            hint="Read without integrity='strict' to skip it as Hudi does, or restore the file.",
        )
    warnings.warn(
        HoodieWarning(
            f"Skipped a corrupt log block of {block.end - block.offset} bytes: {block.reason} "
            f"[path={path}, offset={block.offset}]. This is what Hudi does; integrity='strict' refuses it."
        ),
        stacklevel=2,
    )


def _place_compacted_blocks(collected: _Blocks, *, originals: bool) -> list[ScannedBlock]:
    """Walk instants from the newest to the oldest, and put each log-compacted block in the place of its sources.

    With ``originals`` drop log-compacted blocks instead.
    """
    if originals:
        plain = (blocks for blocks in collected.values() if not blocks[0].block.compacted_instants)
        return [block for blocks in plain for block in blocks]
    replaced_by: dict[str, str] = {}
    emitted: set[str] = set()
    out: list[list[ScannedBlock]] = []
    for instant in reversed(collected):
        blocks = collected[instant]
        sources = blocks[0].block.compacted_instants
        if sources:  # a block that is itself the source of a later compaction passes its own sources on to that one
            final = replaced_by.get(instant, instant)
            for source in sources:
                replaced_by[source] = final
        elif instant not in replaced_by:
            out.append(blocks)
        elif replaced_by[instant] not in emitted:  # the newest source: its place is the compacted block's
            emitted.add(replaced_by[instant])
            out.append(collected[replaced_by[instant]])
    return [block for blocks in reversed(out) for block in blocks]
