"""Which partitions a user's paths stand for (Hudi ``HoodieSparkSqlWriter.resolvePartitionWildcards``).

``*`` stands for any characters, slashes too. Paths without a partition stand for nothing, as in Java.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hoodie_py.errors import InvalidQueryError, InvalidTableError
from hoodie_py.formats.names import check_partition
from hoodie_py.table.snapshot import Snapshot

_WILD = "*"
_ENCODED = "%2A"  # Spark SQL encodes it


def split_paths(text: str) -> tuple[str, ...]:
    """Return the paths of an option: they are joined by commas."""
    return tuple(each.strip() for each in text.split(",") if each.strip())


def choose_partitions(snapshot: Snapshot, paths: Iterable[str]) -> list[str]:
    """Return the partitions of the table that some paths stand for, sorted.

    Raises:
        InvalidQueryError: the table has no partitions, a path leads out of it, or no path was given.
    """
    wanted = [_check(each) for each in paths]
    if not wanted:
        raise InvalidQueryError("No partition was named.", hint="Give the paths of partitions, such as 'city=sf'.")
    if not snapshot.config.is_partitioned:
        raise InvalidQueryError("The table has no partitions.", hint="Overwrite the table, or delete by a filter.")
    every = snapshot.view.list_paths()
    exact = {each for each in wanted if _WILD not in each}
    patterns = [each.split(_WILD) for each in wanted if _WILD in each]
    return sorted(path for path in every if path in exact or any(_matches(path, pieces) for pieces in patterns))


def check_rows_inside(named: Sequence[str], touched: Sequence[str]) -> list[str]:
    """Return the partitions that a user named for an overwrite, if all rows lie in them.

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
    """Whether a path is the pieces with any characters between; linear in its length."""
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
