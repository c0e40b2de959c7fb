"""Spans and measurements for OpenTelemetry, if the process uses it; otherwise nothing is imported or done.

A process uses traces once it has imported ``opentelemetry.trace``, and metrics once it has imported
``opentelemetry.metrics``: its own code, an SDK or ``opentelemetry-instrument`` does that. This module only checks for
those imports, on every call.

Attributes contain neither credentials nor values of rows. So filters, partition paths, record keys and error messages,
which may contain such values, are left out.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from itertools import islice
from operator import attrgetter
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_SCOPE = "hoodie_py"
_TRACE, _METRICS, _CONTEXT = "opentelemetry.trace", "opentelemetry.metrics", "opentelemetry.context"
_DURATION = "operation.duration"
_COUNTERS = {
    "read.rows": ("{row}", "Rows that reads gave."),
    "read.slices": ("{slice}", "File slices that were read."),
    "read.slices_skipped": ("{slice}", "File slices that indexes left out of scans."),
    "read.files": ("{file}", "Base and log files that were read."),
    "read.bytes": ("By", "Sizes of the base and log files that were read, which may be more than was fetched."),
    "write.rows": ("{row}", "Rows that commits changed or wrote anew."),
    "write.bytes": ("By", "Sizes of new base and log files."),
    "store.retries": ("{request}", "Requests to the store that were made again after a failure."),
}
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
# Attributes of results of writes and services: facts for the span, and row counts by what happened to the rows.
_FIGURES = ("instant", "action", "completion_time", "file_groups", "files_deleted", "bytes_read", "bytes_written")
_CHANGES = {f"rows_{change}": change for change in ("inserted", "updated", "deleted", "written")}
_PLACE = ("instant", "file_group", "operation")  # of an error's place: the facts without values of rows

_instruments: dict[str, Any] = {}


class Place(Protocol):
    """Files of a table; ``uri`` is its base path, without credentials."""

    @property
    def uri(self) -> str:
        """The base path."""
        ...


class Watch:
    """An operation that is not watched: the methods do nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None: ...

    def tell(self, **facts: str | float | None) -> None:
        """Add facts to the span as ``hoodie.*``; None is left out."""

    def tell_result(self, result: object) -> None:
        """Add the figures of the result of a write or a service, and count its rows and bytes."""


class _Watched(Watch):
    """An operation with a span, a measured time, or both. The span is current only during ``work``."""

    def __init__(self, operation: str, table: str, facts: dict[str, str | float | None]) -> None:
        self._operation, self._table = operation, table
        self._seconds = 0.0
        trace = _find_api(_TRACE)
        self._span = None
        if trace is not None:
            tracer = trace.get_tracer(_SCOPE, _find_version())
            self._span = tracer.start_span(f"{_SCOPE}.{operation}", attributes=_name_facts({"table": table, **facts}))

    def __enter__(self) -> Self:
        self._working = self.work()
        self._working.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        self._working.__exit__(None, None, None)
        self.end(error)

    @contextmanager
    def work(self) -> Iterator[None]:
        """Work for a block: its time counts, and its spans are children of this one."""
        began = time.perf_counter()
        token = None
        if self._span is not None:
            token = sys.modules[_CONTEXT].attach(sys.modules[_TRACE].set_span_in_context(self._span))
        try:
            yield
        finally:
            if token is not None:
                sys.modules[_CONTEXT].detach(token)
            self._seconds += time.perf_counter() - began

    def end(self, error: BaseException | None) -> None:
        """End the span, and record the time."""
        attributes = _name_facts({"operation": self._operation, "table": self._table})
        if error is not None and _is_failure(error):
            attributes["error.type"] = type(error).__name__
            self._tell_error(error)
        if self._span is not None:
            self._span.end()
        histogram = _find_instrument(_DURATION)
        if histogram is not None:
            histogram.record(self._seconds, attributes)

    def _tell_error(self, error: BaseException) -> None:
        """Add an error without its message, which may contain values of rows or credentials."""
        if self._span is None:
            return
        import traceback

        kind = type(error)
        where = {name: str(value) for name, value in getattr(error, "where", {}).items() if name in _PLACE}
        frames = "".join(traceback.format_tb(error.__traceback__))
        named = {"exception.type": f"{kind.__module__}.{kind.__qualname__}", "exception.stacktrace": frames}
        self._span.add_event("exception", {**named, **_name_facts(where)})
        self._span.set_attribute("error.type", kind.__name__)
        trace = sys.modules[_TRACE]
        self._span.set_status(trace.Status(trace.StatusCode.ERROR, kind.__name__))

    def tell(self, **facts: str | float | None) -> None:
        if self._span is not None:
            self._span.set_attributes(_name_facts(facts))

    def tell_result(self, result: object) -> None:
        figures: dict[str, Any] = {name: getattr(result, name, None) for name in (*_FIGURES, *_CHANGES)}
        figures["instant"] = figures["instant"] or getattr(result, "request_time", None)
        written = getattr(getattr(result, "operation", None), "value", None)
        stat = getattr(result, "stat", None)
        self.tell(write_operation=written, file_id=getattr(stat, "file_id", None), **figures)
        attributes = _name_facts({"operation": self._operation, "table": self._table})
        for name, change in _CHANGES.items():
            # ``rows_written`` includes the other three.
            if figures[name] and (figures["rows_written"] is None or name == "rows_written"):
                _add("write.rows", figures[name], {**attributes, **_name_facts({"change": change})})
        if figures["bytes_written"]:
            _add("write.bytes", figures["bytes_written"], attributes)


def _name_facts(facts: Mapping[str, str | float | None]) -> dict[str, str | float]:
    return {f"hoodie.{name}": each for name, each in facts.items() if each is not None}


_UNWATCHED = Watch()


def is_watched() -> bool:
    """Say whether this process uses OpenTelemetry."""
    return _TRACE in sys.modules or _METRICS in sys.modules


def watch(operation: str, files: Place, /, **facts: str | float | None) -> Watch:
    """Watch an operation on a table for a block: a span ``hoodie_py.<operation>`` and its seconds."""
    return _Watched(operation, files.uri, facts) if is_watched() else _UNWATCHED


def watch_calls(
    operation: str, find_files: Callable[[Any], Place] = attrgetter("files")
) -> Callable[[Callable[Concatenate[T, P], R]], Callable[Concatenate[T, P], R]]:
    """Watch the calls of a function, and report their results. ``find_files`` gets the function's first argument."""

    def decorate(function: Callable[Concatenate[T, P], R]) -> Callable[Concatenate[T, P], R]:
        @wraps(function)
        def call(first: T, /, *args: P.args, **kwargs: P.kwargs) -> R:
            if not is_watched():
                return function(first, *args, **kwargs)
            with watch(operation, find_files(first)) as watched:
                result = function(first, *args, **kwargs)
                watched.tell_result(result)
                return result

        return call

    return decorate


def watch_steps(
    operation: str,
    files: Place,
    steps: Generator[T, None, None],
    count_rows: Callable[[T], int],
    on_end: Callable[[int], Mapping[str, int]] | None = None,
    /,
    **facts: str | float | None,
) -> Generator[T, None, None]:
    """Yield from a generator and watch its work, not the consumer's work between two steps.

    ``on_end`` gets the number of rows and returns further facts for the span.
    """
    return _watch_steps(_Watched(operation, files.uri, facts), steps, count_rows, on_end) if is_watched() else steps


def _watch_steps(
    watched: _Watched,
    steps: Generator[T, None, None],
    count_rows: Callable[[T], int],
    on_end: Callable[[int], Mapping[str, int]] | None,
) -> Generator[T, None, None]:
    rows = 0
    problem: BaseException | None = None
    try:
        while True:
            with watched.work():
                found = list(islice(steps, 1))
            if not found:
                break
            rows += count_rows(found[0])
            yield found.pop()  # keeps no reference to it while the next one is read
    except BaseException as error:
        problem = error
        raise
    finally:
        with watched.work():
            steps.close()
        watched.tell(rows=rows)
        # A consumer that stops early is not a failure: the rows so far count.
        if on_end is not None and (problem is None or isinstance(problem, GeneratorExit)):
            watched.tell(**on_end(rows))
        watched.end(problem)


def _is_failure(error: BaseException) -> bool:
    """Whether the exception is a failure rather than a control signal, such as an abandoned scan."""
    return not isinstance(error, GeneratorExit) and getattr(error, "is_failure", True)


def carry_span(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that runs in the span that is current now, on whichever thread it is called."""
    context = _find_api(_CONTEXT)
    if context is None or not (current := context.get_current()):
        return function

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        token = context.attach(current)
        try:
            return function(*args, **kwargs)
        finally:
            context.detach(token)

    return call


def count(name: str, amount: int, files: Place) -> None:
    """Add to one of the counters of ``_COUNTERS`` for a table."""
    if amount and _METRICS in sys.modules:
        _add(name, amount, _name_facts({"table": files.uri}))


def tell_span(**facts: int) -> None:
    """Add facts to the current span."""
    trace = _find_api(_TRACE)
    if trace is not None:
        trace.get_current_span().set_attributes(_name_facts(facts))


def tell_retry(kind: str) -> None:
    """Count a repeated request and the kind of error before it, and add an event to the current span."""
    _add("store.retries", 1, {"error.type": kind})
    trace = _find_api(_TRACE)
    if trace is not None:
        trace.get_current_span().add_event("hoodie_py.retry", {"error.type": kind})


def _add(name: str, amount: int, attributes: Mapping[str, str | float]) -> None:
    counter = _find_instrument(name)
    if counter is not None:
        counter.add(amount, attributes)


def _find_instrument(name: str) -> Any:
    """Return a counter, or the histogram of durations; None if the process uses no metrics."""
    metrics = _find_api(_METRICS)
    if metrics is None:
        return None
    if name not in _instruments:
        meter = metrics.get_meter(_SCOPE, _find_version())
        make = _make_histogram if name == _DURATION else _make_counter
        _instruments[name] = make(meter, name)
    return _instruments[name]


def _make_counter(meter: Any, name: str) -> Any:
    return meter.create_counter(f"{_SCOPE}.{name}", *_COUNTERS[name])


def _make_histogram(meter: Any, name: str) -> Any:
    text = "Time that operations took, without that of who takes the rows of a scan."
    try:
        return meter.create_histogram(f"{_SCOPE}.{name}", "s", text, explicit_bucket_boundaries_advisory=_SECONDS)
    except TypeError:  # OpenTelemetry before version 1.30
        return meter.create_histogram(f"{_SCOPE}.{name}", "s", text)


def _find_api(name: str) -> Any:
    """Return a module of OpenTelemetry that the process has imported completely, else None."""
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None)
    return None if getattr(spec, "_initializing", False) else module


def _find_version() -> str | None:
    return getattr(sys.modules.get(_SCOPE), "__version__", None)
