"""Read options that are set on a session are those of a load without its own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hoodie_py.spark.session_options import add_session_options, call_on_change, read_session_options

QUERY_TYPE, VIEW_TYPE = "hoodie.datasource.query.type", "hoodie.datasource.view.type"


class Conf:
    """A session's settings."""

    def __init__(self) -> None:
        self.getAll: dict[str, str] = {}

    def set(self, key: str, value: str) -> None:
        self.getAll[key] = value

    def unset(self, key: str) -> None:
        del self.getAll[key]


def test_only_read_options_of_hudi_are_taken() -> None:
    settings = {QUERY_TYPE: "read_optimized", "as.of.instant": "2026", "hoodie.compact.inline": "true", "spark.x": "y"}
    assert read_session_options(SimpleNamespace(conf=SimpleNamespace(getAll=settings))) == {
        QUERY_TYPE: "read_optimized"
    }


@pytest.mark.parametrize("given", [QUERY_TYPE, VIEW_TYPE])
def test_an_option_of_the_load_counts_under_any_of_its_names(given: str) -> None:
    session = {QUERY_TYPE: "read_optimized", VIEW_TYPE: "read_optimized", "hoodie.metadata.enable": "false"}
    found = add_session_options({"path": "/t", given: "snapshot"}, session)
    assert found == {"path": "/t", given: "snapshot", "hoodie.metadata.enable": "false"}


def test_a_change_is_told_once_for_each_name() -> None:
    session: Any = SimpleNamespace(conf=Conf())
    heard: list[str] = []
    for _ in range(2):
        call_on_change(session, "hoodie", lambda: heard.append("hoodie"))
    call_on_change(session, "hudi", lambda: heard.append("hudi"))
    session.conf.set("spark.x", "y")
    assert heard == []
    session.conf.set(key=QUERY_TYPE, value="snapshot")
    assert session.conf.getAll[QUERY_TYPE] == "snapshot"
    assert heard == ["hoodie", "hudi"]
    session.conf.unset(QUERY_TYPE)
    assert len(heard) == 4
