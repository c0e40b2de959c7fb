"""The partitions that a caller's paths stand for (Hudi ``HoodieSparkSqlWriter.resolvePartitionWildcards``).

``*`` stands for any characters, including slashes. If folders are bare values, ``city=sf`` stands for ``sf`` unless a
partition has that very name. Paths without a partition stand for nothing, as in Java, unless the caller forbids it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hoodie_py.errors import InvalidQueryError, InvalidTableError
from hoodie_py.formats.names import check_partition
from hoodie_py.table.snapshot import Snapshot

_WILD = "*"
_ENCODED = "%2A"  # Spark SQL encodes it
_SHOWN = 20


def split_paths(text: str) -> tuple[str, ...]:
    """Return the paths in an option, which are joined by commas."""
    return tuple(each.strip() for each in text.split(",") if each.strip())


def choose_partitions(snapshot: Snapshot, paths: Iterable[str], *, missing_ok: bool = True) -> list[str]:
    """Return the partitions of the table that some paths stand for, sorted.

    Raises:
        InvalidQueryError: the table has no partitions, a path leads out of it, or no path was given; or a path stands
            for no partition and ``missing_ok`` is False.
    """
    wanted = [_check(each) for each in paths]
    if not wanted:
        raise InvalidQueryError("No partition was named.", hint="Give the paths of partitions, such as 'city=sf'.")
    if not snapshot.config.is_partitioned:
        raise InvalidQueryError("The table has no partitions.", hint="Overwrite the table, or delete by a filter.")
    every = snapshot.view.list_paths()
    fields = () if snapshot.config.hive_style_partitioning else snapshot.config.partition_fields
    found: set[str] = set()
    for each in wanted:
        meant = _find(every, each) or _find(every, _drop_fields(each, fields))
        if not meant and not missing_ok:
            raise make_missing_error(every, each)
        found.update(meant)
    return sorted(found)


def make_missing_error(every: Iterable[str], path: str) -> InvalidQueryError:
    """Return the error for a path that stands for no partition; it names the table's partitions."""
    names = sorted(every)
    shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else "")
    return InvalidQueryError(
        f"The table has no partition {path[:200]!r}.", hint=f"There are: {shown}." if names else "It has none at all."
    )


def _find(every: Iterable[str], path: str) -> set[str]:
    if _WILD not in path:
        return {path}.intersection(every)
    pieces = path.split(_WILD)
    return {each for each in every if _matches(each, pieces)}


def _drop_fields(path: str, fields: Sequence[str]) -> str:
    """Return a path without the names of fields before its values, which are in the order of the fields."""
    parts = path.split("/")
    names = [*fields, *[""] * len(parts)]
    return "/".join(part.removeprefix(f"{name}=") if name else part for part, name in zip(parts, names, strict=False))


def check_rows_inside(named: Sequence[str], touched: Sequence[str]) -> list[str]:
    """Return the partitions that a caller named for an overwrite, if all rows lie in them.

    Raises:
        InvalidQueryError: a path leads out of the table, has a wildcard, or rows lie elsewhere.
    """
    paths = [_check(each) for each in named]
    wild = [each for each in paths if _WILD in each]
    if wild or not paths:
        raise InvalidQueryError(f"An overwrite needs the paths of partitions, not {wild or 'none'}.")
    outside = sorted(set(touched).difference(paths))
    if outside:
        raise InvalidQueryError(
            f"Rows lie in other partitions than those to overwrite, such as {outside[0][:200]!r}.",
            hint="Name that partition too, or leave these rows out.",
        )
    return paths


def _check(path: object) -> str:
    if not isinstance(path, str) or not path.strip("/"):
        raise InvalidQueryError(f"{path!r:.100} is not the path of a partition.")
    try:
        return check_partition(path.replace(_ENCODED, _WILD).strip("/"))
    except InvalidTableError as error:
        raise InvalidQueryError(f"The path {path[:100]!r} leads out of the table.") from error


def _matches(path: str, pieces: Sequence[str]) -> bool:
    """Whether a path consists of the pieces with any characters in between; linear in its length."""
    first, *middle, last = pieces
    if not path.startswith(first) or not path.endswith(last) or len(path) < len(first) + len(last):
        return False
    at, end = len(first), len(path) - len(last)
    for each in middle:
        at = path.find(each, at, end)
        if at < 0:
            return False
        at += len(each)
    return True
