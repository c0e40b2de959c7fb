"""Which partitions a clustering plan looks at (Hudi ``ClusteringPlanPartitionFilter``).

The partitions that the options name or that match their pattern come first; the mode chooses among these. Partition
paths are compared as text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from hoodie_py.errors import InvalidQueryError
from hoodie_py.options import clustering as keys

_HOURS = 24


def choose_partitions(paths: Sequence[str], mode: str, options: Mapping[str, str], hour: int) -> list[str]:
    """Return the partitions to plan, in the order in which groups are made. ``hour`` is the hour of the day.

    Raises:
        InvalidQueryError: a pattern cannot be understood.
    """
    chosen = _select(paths, options)
    if mode == keys.RECENT_DAYS:
        skipped, most = keys.SKIP_LATEST_PARTITIONS.read(options), keys.LOOKBACK_PARTITIONS.read(options)
        newest = sorted(chosen, reverse=True)[skipped:]
        return newest[:most] if most else newest
    if mode == keys.SELECTED_PARTITIONS:
        begin, end = keys.BEGIN_PARTITION.read(options), keys.END_PARTITION.read(options)
        return [each for each in chosen if (begin is None or each >= begin) and (end is None or each <= end)]
    if mode == keys.DAY_ROLLING:
        return [each for number, each in enumerate(sorted(chosen)) if number % _HOURS == hour]
    return chosen


def _select(paths: Sequence[str], options: Mapping[str, str]) -> list[str]:
    named = set(keys.PARTITIONS_SELECTED.read(options))
    chosen = [each for each in paths if not named or each in named]
    pattern = keys.PARTITION_REGEX.read(options)
    if pattern is None:
        return chosen
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise InvalidQueryError(
            f"The pattern of partition paths cannot be understood: {error}.", hint=f"See {keys.PARTITION_REGEX}."
        ) from error
    return [each for each in chosen if compiled.fullmatch(each)]
