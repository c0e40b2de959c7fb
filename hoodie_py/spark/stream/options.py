"""Parses the options of ``spark.readStream.format("hoodie")``.

A stream takes the options of a load. It begins where Java's ``hoodie.datasource.streaming.startOffset`` says
("earliest", "latest" or a time), or the begin of an incremental query. It has no end, and reads no earlier state.

Two defaults differ from those of a load, because a stream must not lose rows. Up to table version 6 it waits before the
first unfinished commit (Java: ``HoodieStreamSourceV1``). And a range whose files are gone is an error, on all versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.config.table_config import FIRST_VERSION_WITH_COMPLETION_TIMES
from hoodie_py.options.read import (
    AS_READ_OPTIMIZED,
    FALLBACK_TO_FULL_SCAN,
    HOLES_POLICY,
    INCREMENTAL_FORMAT,
    QUERY_TYPE,
    RANGE_END,
    RANGE_START,
    RANGE_TABLE_VERSION,
    STREAM_START,
    STREAM_TABLE_VERSION,
)
from hoodie_py.spark.load_options import LoadOptions
from hoodie_py.spark.stream.limits import Limits
from hoodie_py.table.incremental.commit_range import EARLIEST, LATEST

_DEFAULTS = {str(HOLES_POLICY): "BLOCK", str(FALLBACK_TO_FULL_SCAN): "false"}


@dataclass(frozen=True, slots=True, repr=False)
class StreamOptions:
    """The options of a stream; its repr shows no storage options.

    ``load``: the options of each of its batches, without start and end. ``start``: "earliest", "latest" or a time.
    """

    load: LoadOptions
    start: str
    limits: Limits
    is_cdc: bool = False

    @classmethod
    def parse(cls, load: LoadOptions) -> StreamOptions:
        """Parse the options of a stream.

        Raises:
            InvalidQueryError: a value is not valid, or options contradict each other.
            UnsupportedFeatureError: an option asks for something that a stream cannot read.
        """
        given = load.hoodie
        _refuse_others(load)
        hoodie = {name: value for name, value in given.items() if name not in _NOT_OF_BATCHES}
        version = STREAM_TABLE_VERSION.read_given(given)
        if version is not None and version < FIRST_VERSION_WITH_COMPLETION_TIMES:
            hoodie.setdefault(str(RANGE_TABLE_VERSION), str(version))
        batch = replace(load, hoodie={**_DEFAULTS, **hoodie, str(QUERY_TYPE): "incremental"})
        is_cdc = INCREMENTAL_FORMAT.read(given) == "cdc"
        if is_cdc and QUERY_TYPE.read_given(given) != "incremental":
            raise InvalidQueryError(
                f"{INCREMENTAL_FORMAT}=cdc alone makes no stream of changes.",
                hint=f"Set {QUERY_TYPE}=incremental, too.",
            )
        return cls(batch, _choose_start(given), Limits.parse(load.limits), is_cdc)

    @property
    def hoodie(self) -> Mapping[str, str]:
        """Java Hudi's options of each batch."""
        return self.load.hoodie

    def limit_range(self, start: str, end: str) -> LoadOptions:
        """Return the options of the batch with the commits after position ``start``, up to ``end``."""
        times = {str(RANGE_START): start or EARLIEST, str(RANGE_END): end}
        return replace(self.load, hoodie={**self.load.hoodie, **times})

    def as_snapshot(self) -> LoadOptions:
        """Return the options of a batch that is a snapshot of the table."""
        hoodie = {name: value for name, value in self.load.hoodie.items() if name != INCREMENTAL_FORMAT}
        return replace(self.load, hoodie={**hoodie, str(QUERY_TYPE): "snapshot"})

    def __repr__(self) -> str:
        return f"StreamOptions({self.load!r}, {self.start!r})"


_NOT_OF_BATCHES = {*QUERY_TYPE.names, *RANGE_START.names, *RANGE_END.names, *(n.lower() for n in STREAM_START.names)}


def _refuse_others(load: LoadOptions) -> None:
    if load.as_of is not None:
        raise InvalidQueryError("A stream does not read an earlier state.", hint=f"Give {STREAM_START} instead.")
    if RANGE_END.find_text(load.hoodie) is not None:
        raise InvalidQueryError(
            f"A stream has no end, but {RANGE_END} is given.", hint="Read the range with spark.read, or leave it out."
        )
    if QUERY_TYPE.read(load.hoodie) == "read_optimized" or AS_READ_OPTIMIZED.read(load.hoodie):
        raise UnsupportedFeatureError(
            "Streams of a read-optimized table.", hint=f"Leave out {QUERY_TYPE} and {AS_READ_OPTIMIZED}."
        )


def _choose_start(given: Mapping[str, str]) -> str:
    start, begin = STREAM_START.find_text(given), RANGE_START.find_text(given)
    if start is not None and begin is not None and start != begin:
        raise InvalidQueryError(
            f"{STREAM_START} and {RANGE_START} say different things.", hint=f"Leave out {RANGE_START}."
        )
    found = start or begin or EARLIEST
    return found.lower() if found.lower() in (EARLIEST, LATEST) else found
