"""Instants, the names of their files, and sets of instants.

Each step of an action on a table is one file, whose name is all that an instant consists of (Hudi HoodieInstant,
InstantFileNameParserV1, InstantFileNameParserV2):

    layout 1, in .hoodie/            layout 2, in .hoodie/timeline/
    T.{action}.requested             T.{action}.requested
    T.{action}.inflight              T.{action}.inflight
    T.{completed action}             T_C.{completed action}

T is the request time, C the completion time. Exceptions: an inflight commit is ``T.inflight``; a compaction completes
as ``commit``, a log compaction as ``deltacommit``, a clustering as ``replacecommit``. Files without completion time use
their request time for it: all files of layout 1, and completed files in layout 2 that an upgrade left (``is_legacy``).

Tasks of old tables carry thousands of instants, so an ``InstantSet`` is small when pickled. Instants are digits: of
each length, it pickles the compressed differences between neighbours, about three bytes an instant instead of twenty. A
process that gets the same set many times unpacks it once.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from hoodie_py.formats.config.table_config import TableConfig

REQUESTED = "requested"
INFLIGHT = "inflight"
COMPLETED = "completed"
STATES = (REQUESTED, INFLIGHT, COMPLETED)

COMMIT = "commit"
DELTA_COMMIT = "deltacommit"
COMPACTION = "compaction"
LOG_COMPACTION = "logcompaction"
REPLACE_COMMIT = "replacecommit"
CLUSTERING = "clustering"
CLEAN = "clean"
ROLLBACK = "rollback"
RESTORE = "restore"
SAVEPOINT = "savepoint"
INDEXING = "indexing"
SCHEMA_COMMIT = "schemacommit"  # in .hoodie/.schema/, never on the timeline proper

ACTIONS = (
    COMMIT, DELTA_COMMIT, COMPACTION, LOG_COMPACTION, REPLACE_COMMIT, CLUSTERING, CLEAN, ROLLBACK, RESTORE, SAVEPOINT,
    INDEXING, SCHEMA_COMMIT,
)  # fmt: skip
COMPLETED_ACTION = {COMPACTION: COMMIT, LOG_COMPACTION: DELTA_COMMIT, CLUSTERING: REPLACE_COMMIT}
WRITE_ACTIONS = (COMMIT, DELTA_COMMIT, COMPACTION, LOG_COMPACTION, REPLACE_COMMIT, CLUSTERING)

_ACTIONS = frozenset(ACTIONS)
_MOST_DIGITS = 32


@dataclass(frozen=True, slots=True)
class Instant:
    """One action on the table at one time.

    ``completion_time`` is None until the action has completed. Times are digits and compare as strings. ``action`` is
    the name the current state has on disk: a pending ``compaction`` becomes a completed ``commit``. ``is_legacy`` marks
    a completed instant whose file name lacks the completion time although the layout has one.

    Examples:
        >>> first = trips.timeline.instants[0]
        >>> first.action, first.state, len(first.request_time), first.completion_time > first.request_time
        ('deltacommit', 'completed', 17, True)
    """

    request_time: str
    completion_time: str | None
    action: str
    state: str
    is_legacy: bool = False

    @property
    def is_completed(self) -> bool:
        """Whether the action has taken effect."""
        return self.state == COMPLETED

    @property
    def comparable_action(self) -> str:
        """The action of the completed state, which is the same for all states of an instant."""
        return COMPLETED_ACTION.get(self.action, self.action)

    @property
    def is_write(self) -> bool:
        """Whether the action writes or rewrites data files."""
        return self.action in WRITE_ACTIONS

    def file_name(self, layout: int) -> str:
        """Return the name of this state's file, in timeline layout 1 or 2."""
        if self.state == COMPLETED:
            timed = layout == 2 and not self.is_legacy and self.completion_time is not None
            prefix = f"{self.request_time}_{self.completion_time}" if timed else self.request_time
            return f"{prefix}.{self.comparable_action}"
        if self.state == INFLIGHT and self.action == COMMIT:
            return f"{self.request_time}.inflight"
        return f"{self.request_time}.{self.action}.{self.state}"

    @property
    def sort_key(self) -> tuple[str, str, int]:
        """Timeline order: request time, comparable action, state."""
        return self.request_time, self.comparable_action, STATES.index(self.state)


def locate_instant(config: TableConfig, instant: Instant) -> str:
    """Return the path of the file of an instant's state, relative to the table."""
    return f"{config.find_timeline_folder()}/{instant.file_name(config.timeline_layout)}"


def locate_requested(config: TableConfig, instant: Instant) -> str:
    """Return the path of an instant's requested file, which holds its plan, whatever its state."""
    return locate_instant(config, replace(instant, state=REQUESTED))


@dataclass(frozen=True, slots=True)
class InstantFile:
    """A timeline file: its name and its instant."""

    name: str
    instant: Instant


def parse_instant_file(name: str, layout: int) -> InstantFile | None:
    """Parse the name of a timeline file of layout 1 or 2; None for other names and unknown actions."""
    instant = parse_instant_name(name, layout)
    return None if instant is None else InstantFile(name, instant)


def parse_instant_name(name: str, layout: int) -> Instant | None:
    """Return the instant of a timeline file of layout 1 or 2; None for other names and unknown actions.

    A timeline may have many thousands of names, so there is no regular expression here.
    """
    first, *words = name.split(".")
    time, _, completion = first.partition("_")
    if not _is_time(time) or len(words) not in (1, 2) or (completion == "" and len(first) > len(time)):
        return None
    if len(words) == 2:
        action, state = words
        pending = action in _ACTIONS and state in (REQUESTED, INFLIGHT) and not completion
        return Instant(time, None, action, state) if pending else None
    if completion and (layout == 1 or not _is_time(completion)):
        return None
    if words[0] == INFLIGHT:
        return None if completion else Instant(time, None, COMMIT, INFLIGHT)
    if words[0] not in _ACTIONS or words[0] in COMPLETED_ACTION:
        return None
    return Instant(time, completion or time, words[0], COMPLETED, layout == 2 and not completion)


def _is_time(text: str) -> bool:
    return 0 < len(text) <= _MOST_DIGITS and text.isascii() and text.isdigit()


_INT64_DIGITS = 18  # of an int64

Packed = tuple[int, bytes]  # the number of digits, and the compressed differences


class InstantSet(frozenset[str]):
    """Instants, which compare as strings; equal to a plain set of the same instants."""

    def __reduce__(self) -> tuple[object, ...]:
        return unpack_instants, self._packed

    @cached_property
    def _packed(self) -> tuple[tuple[str, ...], tuple[Packed, ...]]:
        by_length: dict[int, list[int]] = {}
        others = []
        for text in self:
            if len(text) <= _INT64_DIGITS and text.isascii() and text.isdigit():
                by_length.setdefault(len(text), []).append(int(text))
            else:
                others.append(text)
        return tuple(sorted(others)), tuple((length, _pack(by_length[length])) for length in sorted(by_length))


@lru_cache(maxsize=4)
def unpack_instants(others: tuple[str, ...], packed: Iterable[Packed]) -> InstantSet:
    """Return the set that was pickled."""
    found = list(others)
    for length, differences in packed:
        numbers = np.cumsum(np.frombuffer(zlib.decompress(differences), np.int64))
        found += [f"{number:0{length}d}" for number in numbers.tolist()]
    return InstantSet(found)


def _pack(numbers: list[int]) -> bytes:
    ordered = np.sort(np.array(numbers, np.int64))
    return zlib.compress(np.diff(ordered, prepend=0).tobytes(), 6)
