"""Bars of processor time, as small SVG files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl  # type: ignore[import-not-found]

mpl.use("svg")
from matplotlib import pyplot as plt

_OURS, _PEER, _FLOOR = "#1f77b4", "#bbbbbb", "#dddddd"
_SETTINGS = {"svg.fonttype": "none", "svg.hashsalt": "hoodie_py", "font.size": 9}
Bar = tuple[str, float, str]  # label, value, colour


def draw_in_process(figures: Mapping[str, Any], path: Path) -> None:
    """Draw what each way of reading takes, by table."""
    panels = {}
    for name, table in figures["tables"].items():
        ways = table["ways"]
        panels[name] = [
            (way, ways[way]["cpu"], _OURS if way.startswith("hoodie") else _PEER if way.startswith("hudi") else _FLOOR)
            for way in (
                "hoodie_py",
                "hoodie_py by keys",
                "hudi-rs",
                "pyarrow base files, 1 processor",
                "hoodie_py 3 columns",
                "hudi-rs 3 columns",
                "hoodie_py count",
            )
        ]
    _draw(panels, path)


def draw_spark(figures: Mapping[str, Any], path: Path) -> None:
    """Draw what each query takes in Spark, by table."""
    panels = {}
    for name, table in figures["tables"].items():
        panels[name] = [
            (f"{query}: {way}", this["cpu"], _PEER if way == "java" else _FLOOR if way == "parquet" else _OURS)
            for query, ways in table["queries"].items()
            for way, this in ways.items()
            if "local" not in way
        ]
    _draw(panels, path)


def _draw(panels: Mapping[str, Sequence[Bar]], path: Path) -> None:
    most = max(len(bars) for bars in panels.values())
    with mpl.rc_context(_SETTINGS):
        figure, axes = plt.subplots(1, len(panels), figsize=(5.2 * len(panels), 0.3 * most + 0.9), squeeze=False)
        for axis, (title, bars) in zip(axes[0], panels.items(), strict=True):
            labels, values, colours = zip(*reversed(bars), strict=True)
            drawn = axis.barh(labels, values, color=colours)
            axis.bar_label(drawn, fmt="%.1f", padding=2)
            axis.set_title(title)
            axis.set_xlabel("seconds of CPU, less is better")
            axis.spines[["top", "right"]].set_visible(False)
            axis.margins(x=0.12)
        figure.tight_layout()
        figure.savefig(path, format="svg", metadata={"Date": None}, bbox_inches="tight")
        plt.close(figure)
