"""Resolve the options of clustering (Hudi ``HoodieClusteringConfig``).

Strategies are named by Java's classes. Those that choose slices by size, and that sort and size the new files, are
built here, under all names that Java has for them; other classes are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.options import clustering as keys

LINEAR, Z_ORDER, HILBERT = "LINEAR", "ZORDER", "HILBERT"
EXECUTION_CLASS = "org.apache.hudi.client.clustering.run.strategy.SparkSortAndSizeExecutionStrategy"

_MODES = {
    "SparkSizeBasedClusteringPlanStrategy": None,
    "JavaSizeBasedClusteringPlanStrategy": None,
    "FlinkSizeBasedClusteringPlanStrategy": None,
    "SparkRecentDaysClusteringPlanStrategy": keys.RECENT_DAYS,
    "JavaRecentDaysClusteringPlanStrategy": keys.RECENT_DAYS,
    "SparkSelectedPartitionsClusteringPlanStrategy": keys.SELECTED_PARTITIONS,
}
_EXECUTIONS = ("SparkSortAndSizeExecutionStrategy", "JavaSortAndSizeExecutionStrategy")


@dataclass(frozen=True, slots=True)
class Layout:
    """In what order rows go into the new files.

    Attributes:
        columns: sort columns, dotted for fields of structs; none: the rows keep the order in which they are read.
        curve: LINEAR sorts by one column after the other; ZORDER and HILBERT follow a curve through all of them.
        sampled: the curve goes through ranks of values in a sample, not through the values themselves.
    """

    columns: tuple[str, ...] = ()
    curve: str = LINEAR
    sampled: bool = False

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Layout:
        """Resolve the options, or the parameters of a plan, which are options too.

        Raises:
            InvalidQueryError: an unknown layout.
        """
        text = keys.LAYOUT.read(options) or LINEAR
        curve = text.upper().replace("-", "").replace("_", "")
        if curve not in (LINEAR, Z_ORDER, HILBERT):
            raise InvalidQueryError(
                f"The layout {text[:40]!r} is not known.", hint=f"{keys.LAYOUT} is linear, z-order or hilbert."
            )
        return cls(keys.SORT_COLUMNS.read(options), curve, keys.CURVE_BUILD.read(options) == "SAMPLE")

    @property
    def params(self) -> dict[str, str]:
        """The layout as parameters of a plan; what is Java's default is left out, as Java does."""
        if not self.columns:
            return {}
        params = {str(keys.SORT_COLUMNS): ",".join(self.columns)}
        if self.curve != LINEAR:
            params[str(keys.LAYOUT)] = self.curve
            if self.sampled:
                params[str(keys.CURVE_BUILD)] = "SAMPLE"
        return params


@dataclass(frozen=True, slots=True)
class ClusteringSettings:
    """Hold the settings of a clustering plan; sizes are in bytes. ``mode`` filters partitions; rows keep their
    meta columns if ``keeps_meta``.
    """

    mode: str
    small_file_bytes: int
    group_bytes: int
    most_groups: int
    target_file_bytes: int
    single_groups: bool
    layout: Layout
    keeps_meta: bool
    options: Mapping[str, str]

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> ClusteringSettings:
        """Resolve the options.

        Raises:
            InvalidQueryError: a value is out of range.
            UnsupportedFeatureError: a strategy class that is not built here.
        """
        check_execution(keys.EXECUTION_STRATEGY.read(options))
        mode = _find_mode(keys.PLAN_STRATEGY.read(options)) or keys.PARTITION_FILTER.read(options)
        layout = Layout.from_options(options)
        return cls(
            mode=mode,
            small_file_bytes=keys.SMALL_FILE_LIMIT.read(options),
            group_bytes=keys.MAX_GROUP_BYTES.read(options),
            most_groups=keys.MAX_GROUPS.read(options),
            target_file_bytes=keys.TARGET_FILE_BYTES.read(options),
            single_groups=keys.SINGLE_GROUPS.read(options) or bool(layout.columns),
            layout=layout,
            keeps_meta=keys.PRESERVE_METADATA.read(options),
            options=options,
        )


def _find_mode(strategy: str | None) -> str | None:
    name = (strategy or "SparkSizeBasedClusteringPlanStrategy").rpartition(".")[2]
    if name not in _MODES:
        raise UnsupportedFeatureError(
            f"The clustering plan strategy {name[:80]!r}.", hint=f"Handled: {', '.join(sorted(_MODES))}."
        )
    return _MODES[name]


def check_execution(strategy: str | None) -> None:
    """Refuse an execution strategy that is not built here.

    Raises:
        UnsupportedFeatureError: names it.
    """
    name = (strategy or EXECUTION_CLASS).rpartition(".")[2]
    if name not in _EXECUTIONS:
        raise UnsupportedFeatureError(
            f"The clustering execution strategy {name[:80]!r}.", hint=f"Handled: {', '.join(_EXECUTIONS)}."
        )
