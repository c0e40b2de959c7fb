"""What to read for the changes of one file group: a step for each commit, or for the commits of one log.

The kinds (Hudi ``HoodieCDCInferenceCase``):

    ChangeLog        AS_IS: a ``.cdc`` file has the changes, or their keys
    WholeSlice       BASE_FILE_INSERT, BASE_FILE_DELETE, REPLACE_COMMIT: all rows came, or all rows went
    MergedLog        LOG_FILE: log files, compared with the slice below them
    ComparedSlices   a base file that was rewritten without a change log, for which Java has an error or wrong rows

Steps are immutable, small and picklable.
"""

from __future__ import annotations

from dataclasses import dataclass

from hoodie_py.reader.file_slice import FileSlice, LogFile


@dataclass(frozen=True, slots=True)
class State:
    """A slice at a moment of the past; log blocks of the commits in ``without`` do not count."""

    file_slice: FileSlice
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChangeLog:
    """Change logs of one commit; ``before`` and ``after`` have the rows that the logs may lack."""

    instant: str
    files: tuple[LogFile, ...]
    before: State | None
    after: State | None


@dataclass(frozen=True, slots=True)
class WholeSlice:
    """All rows of a slice, which a commit inserted or deleted."""

    instant: str
    state: State
    is_insert: bool


@dataclass(frozen=True, slots=True)
class MergedLog:
    """The changes that commits, in order of completion, wrote into the log of a slice."""

    instants: tuple[str, ...]
    state: State


@dataclass(frozen=True, slots=True)
class ComparedSlices:
    """The rows of a file group before and after a commit."""

    instant: str
    before: State
    after: State


Step = ChangeLog | WholeSlice | MergedLog | ComparedSlices


def list_slices(step: Step) -> list[FileSlice]:
    """Return the slices that a step reads."""
    match step:
        case WholeSlice() | MergedLog():
            return [step.state.file_slice]
        case ChangeLog() | ComparedSlices():
            return [each.file_slice for each in (step.before, step.after) if each is not None]


def count_bytes(step: Step) -> int:
    """Return the bytes of the files that a step reads, a measure of the work."""
    total = sum(log.size for log in step.files) if isinstance(step, ChangeLog) else 0
    for file_slice in list_slices(step):
        total += 0 if file_slice.base_file is None else file_slice.base_file.whole_size
        total += sum(log.size for log in file_slice.log_files)
    return total
