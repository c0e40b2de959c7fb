"""Resolve the options of clustering (Hudi ``HoodieClusteringConfig``).

Strategies are named by Java's classes. Those that choose slices by size, and that sort and size the new files, are
built here, under all names that Java has for them, and those of tables with consistent hashing. Which of both a table
takes, it says itself; other classes are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.options import clustering as keys
from hoodie_py.writer.clustering.bucket_plan import ResizeSettings

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
_FLINK_PLAN = "FlinkConsistentBucketClusteringPlanStrategy"  # only splits
_BUCKET_PLANS = ("SparkConsistentBucketClusteringPlanStrategy", _FLINK_PLAN)
_PACKAGE = "org.apache.hudi.client.clustering.run.strategy"
_SINGLE_JOB = f"{_PACKAGE}.SingleSparkJobConsistentHashingExecutionStrategy"  # refuses tables without partitions
_SEVERAL_JOBS = f"{_PACKAGE}.SparkConsistentBucketClusteringExecutionStrategy"
_BUCKET_EXECUTIONS = tuple(each.rpartition(".")[2] for each in (_SINGLE_JOB, _SEVERAL_JOBS))


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
    meta columns if ``keeps_meta``. ``execution`` is the Java class that the plan names. ``resize``: how buckets of a
    table with consistent hashing are chosen, None for other tables.
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
    execution: str = EXECUTION_CLASS
    resize: ResizeSettings | None = None

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> ClusteringSettings:
        """Resolve the options for a table without buckets.

        Raises:
            InvalidQueryError: a value is out of range.
            UnsupportedFeatureError: a strategy class that is not built here, or one of other tables.
        """
        check_execution(keys.EXECUTION_STRATEGY.read(options))
        mode = _find_mode(keys.PLAN_STRATEGY.read(options))
        return cls._read(options, mode or keys.PARTITION_FILTER.read(options))

    @classmethod
    def for_buckets(cls, options: Mapping[str, str], file_bytes: int, *, partitioned: bool) -> ClusteringSettings:
        """Resolve the options for a table with consistent hashing. ``file_bytes`` is the largest size of a base file.

        Raises:
            HoodieError: as ``from_options``.
        """
        plan = _get_name(keys.PLAN_STRATEGY.read(options), _BUCKET_PLANS[0])
        if plan not in _BUCKET_PLANS:
            raise _make_plan_error(plan, _BUCKET_PLANS)
        execution = keys.EXECUTION_STRATEGY.read(options) or (_SINGLE_JOB if partitioned else _SEVERAL_JOBS)
        check_execution(execution, of_buckets=True)
        resize = ResizeSettings.from_options(options, file_bytes, only_splits=plan == _FLINK_PLAN)
        read = cls._read(options, keys.PARTITION_FILTER.read(options))
        return replace(read, execution=execution, resize=resize)

    @classmethod
    def _read(cls, options: Mapping[str, str], mode: str) -> ClusteringSettings:
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


def _get_name(strategy: str | None, default: str) -> str:
    return (strategy or default).rpartition(".")[2]


def _find_mode(strategy: str | None) -> str | None:
    name = _get_name(strategy, "SparkSizeBasedClusteringPlanStrategy")
    if name not in _MODES:
        raise _make_plan_error(name, sorted(_MODES))
    return _MODES[name]


def _make_plan_error(name: str, handled: Iterable[str]) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"The clustering plan strategy {name[:80]!r} for this table.", hint=f"Handled: {', '.join(handled)}."
    )


def check_execution(strategy: str | None, *, of_buckets: bool = False) -> None:
    """Refuse an execution strategy that is not built here, or not for such a table. ``of_buckets``: the table has
    consistent hashing.

    Raises:
        UnsupportedFeatureError: names it.
    """
    handled = _BUCKET_EXECUTIONS if of_buckets else _EXECUTIONS
    name = _get_name(strategy, handled[0])
    if name not in handled:
        raise UnsupportedFeatureError(
            f"The clustering execution strategy {name[:80]!r} for this table.", hint=f"Handled: {', '.join(handled)}."
        )


def check_planned_execution(strategy: str | None, *, of_buckets: bool) -> None:
    """Refuse a saved plan with an execution strategy that is not built here. Flink's plans for buckets name the class
    of other tables.

    Raises:
        UnsupportedFeatureError: names it.
    """
    if not of_buckets or _get_name(strategy, _EXECUTIONS[0]) not in _EXECUTIONS:
        check_execution(strategy, of_buckets=of_buckets)
