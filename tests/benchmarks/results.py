"""Measured figures on their way from runs to the report: one JSON file a benchmark, in the cache folder."""

from __future__ import annotations

import datetime
import json
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from importlib import metadata
from typing import Any

from tests.benchmarks.bench_tables import cache_folder
from tests.benchmarks.job import ReadSample
from tests.benchmarks.processes import load, machine


def medians(samples: Iterable[ReadSample]) -> dict[str, float]:
    """Return the median of each figure, with the least and greatest processor time."""
    rows = [asdict(sample) for sample in samples]
    figures = {
        name: statistics.median(row[name] for row in rows) for name in ("cold_cpu", "cold_wall", "cpu", "wall", "peak")
    }
    return {**figures, "least_cpu": min(row["cpu"] for row in rows), "most_cpu": max(row["cpu"] for row in rows)}


def versions(*packages: str) -> dict[str, str]:
    """Return the versions of installed packages."""
    return {name: metadata.version(name) for name in packages}


def save(name: str, values: Mapping[str, Any], load_before: float, packages: Mapping[str, str]) -> None:
    """Keep a benchmark's figures with date, machine, versions and the machine's load."""
    about = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": machine(),
        "load": [round(load_before, 1), round(load(), 1)],
        "versions": dict(packages),
    }
    (cache_folder() / f"{name}.json").write_text(json.dumps({"about": about, **values}, indent=1))


def saved(name: str) -> dict[str, Any] | None:
    """Return figures kept earlier; None when there are none."""
    path = cache_folder() / f"{name}.json"
    return json.loads(path.read_text()) if path.is_file() else None
