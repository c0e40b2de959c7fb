from __future__ import annotations

import pytest

from hoodie_py.errors import InvalidTableError
from hoodie_py.formats.config.merge_config import (
    AWS_DMS_PAYLOAD,
    COMMIT_TIME_STRATEGY_ID,
    DEFAULT_PAYLOAD,
    EVENT_TIME_PAYLOAD,
    EVENT_TIME_STRATEGY_ID,
    MYSQL_DEBEZIUM_PAYLOAD,
    OVERWRITE_NON_DEFAULTS_PAYLOAD,
    OVERWRITE_WITH_LATEST_PAYLOAD,
    PAYLOAD_STRATEGY_ID,
    POSTGRES_DEBEZIUM_PAYLOAD,
    MergeConfig,
    MergeMode,
    collect_merge_properties,
    infer_merge,
    resolve_merge,
)

EVENT, COMMIT, CUSTOM = MergeMode.EVENT_TIME_ORDERING, MergeMode.COMMIT_TIME_ORDERING, MergeMode.CUSTOM
BY_EVENT = MergeConfig(EVENT, EVENT_TIME_STRATEGY_ID, DEFAULT_PAYLOAD)
BY_COMMIT = MergeConfig(COMMIT, COMMIT_TIME_STRATEGY_ID, OVERWRITE_WITH_LATEST_PAYLOAD)
BY_PAYLOAD = MergeConfig(CUSTOM, PAYLOAD_STRATEGY_ID, "own.Payload")
BY_STRATEGY = MergeConfig(CUSTOM, "own-strategy", DEFAULT_PAYLOAD)

# version, mode, payload class, strategy id, ordering fields? -> answers of Java Hudi 1.2.0
INFERRED = [
    (6, None, None, None, False, BY_COMMIT),
    (6, None, None, None, True, BY_EVENT),
    (6, EVENT, None, None, False, BY_EVENT),
    (6, None, DEFAULT_PAYLOAD, None, False, BY_EVENT),
    (6, None, EVENT_TIME_PAYLOAD, None, False, MergeConfig(EVENT, EVENT_TIME_STRATEGY_ID, EVENT_TIME_PAYLOAD)),
    (6, None, OVERWRITE_WITH_LATEST_PAYLOAD, None, True, BY_COMMIT),
    (6, None, OVERWRITE_WITH_LATEST_PAYLOAD, EVENT_TIME_STRATEGY_ID, True, BY_COMMIT),
    (6, None, "own.Payload", None, False, BY_PAYLOAD),
    (6, CUSTOM, "own.Payload", "own-strategy", False, BY_PAYLOAD),
    (6, CUSTOM, None, "own-strategy", False, BY_STRATEGY),
    (6, None, DEFAULT_PAYLOAD, PAYLOAD_STRATEGY_ID, False, BY_EVENT),
    (6, None, OVERWRITE_NON_DEFAULTS_PAYLOAD, None, False,
     MergeConfig(CUSTOM, PAYLOAD_STRATEGY_ID, OVERWRITE_NON_DEFAULTS_PAYLOAD)),
    (6, CUSTOM, DEFAULT_PAYLOAD, "own-strategy", False, None),
    (6, CUSTOM, None, None, False, None),
    (6, COMMIT, DEFAULT_PAYLOAD, None, False, None),
    (8, None, None, None, True, BY_EVENT),
    (8, EVENT, None, None, False, BY_EVENT),
    (8, None, DEFAULT_PAYLOAD, None, False, BY_EVENT),
    (8, None, EVENT_TIME_PAYLOAD, None, False, MergeConfig(EVENT, EVENT_TIME_STRATEGY_ID, EVENT_TIME_PAYLOAD)),
    (8, None, "own.Payload", None, False, BY_PAYLOAD),
    (8, CUSTOM, "own.Payload", "own-strategy", False, MergeConfig(CUSTOM, "own-strategy", "own.Payload")),
    (8, CUSTOM, None, "own-strategy", False, BY_STRATEGY),
    (8, None, DEFAULT_PAYLOAD, PAYLOAD_STRATEGY_ID, False,
     MergeConfig(CUSTOM, PAYLOAD_STRATEGY_ID, DEFAULT_PAYLOAD)),
    (8, CUSTOM, DEFAULT_PAYLOAD, "own-strategy", False, BY_STRATEGY),
    (8, CUSTOM, None, PAYLOAD_STRATEGY_ID, False, None),
    (8, None, DEFAULT_PAYLOAD, COMMIT_TIME_STRATEGY_ID, False, None),
]  # fmt: skip


@pytest.mark.parametrize(("version", "mode", "payload", "strategy", "has_ordering", "expected"), INFERRED)
def test_merging_is_inferred_as_java_does(
    version: int,
    mode: MergeMode | None,
    payload: str | None,
    strategy: str | None,
    has_ordering: bool,
    expected: MergeConfig | None,
) -> None:
    if expected is None:
        with pytest.raises(InvalidTableError):
            infer_merge(version, mode, payload, strategy, has_ordering=has_ordering)
    else:
        assert infer_merge(version, mode, payload, strategy, has_ordering=has_ordering) == expected


def test_a_version_6_table_without_payload_class_has_the_default_payload() -> None:
    assert resolve_merge(6, None, None, None, has_ordering=False) == BY_EVENT
    assert resolve_merge(6, COMMIT, None, None, has_ordering=True) == BY_COMMIT


def test_a_strategy_of_the_users_own_is_never_passed_over() -> None:
    assert resolve_merge(6, None, None, "own-strategy", has_ordering=True) == BY_STRATEGY


VERSION_9 = [
    (EVENT, None, None, MergeConfig(EVENT, EVENT_TIME_STRATEGY_ID, None)),
    (COMMIT, None, COMMIT_TIME_STRATEGY_ID, MergeConfig(COMMIT, COMMIT_TIME_STRATEGY_ID, None)),
    (CUSTOM, None, "own-strategy", MergeConfig(CUSTOM, "own-strategy", None)),
    (CUSTOM, "own.Payload", PAYLOAD_STRATEGY_ID, BY_PAYLOAD),
    (CUSTOM, "own.Payload", None, BY_PAYLOAD),
    (EVENT, None, COMMIT_TIME_STRATEGY_ID, None),
    (COMMIT, None, "own-strategy", None),
    (CUSTOM, None, EVENT_TIME_STRATEGY_ID, None),
    (CUSTOM, None, None, None),
    (CUSTOM, None, PAYLOAD_STRATEGY_ID, None),
]


@pytest.mark.parametrize(("mode", "payload", "strategy", "expected"), VERSION_9)
def test_version_9_is_taken_as_stored(
    mode: MergeMode, payload: str | None, strategy: str | None, expected: MergeConfig | None
) -> None:
    if expected is None:
        with pytest.raises(InvalidTableError):
            resolve_merge(9, mode, payload, strategy, has_ordering=True)
    else:
        assert resolve_merge(9, mode, payload, strategy, has_ordering=True) == expected


def test_only_the_payload_strategy_is_payload_based() -> None:
    assert BY_PAYLOAD.is_payload_based
    assert not BY_STRATEGY.is_payload_based
    assert not BY_EVENT.is_payload_based


PREFIX, DELETE_KEYS = "p.", ("field", "marker")


def test_merge_properties_lose_prefix_and_blanks() -> None:
    properties = {"p.a.b": " 1 ", "p.": "x", "q.x": "y", "p. c ": "2"}
    assert collect_merge_properties(properties, PREFIX, DELETE_KEYS, 9, None) == {"a.b": "1", "c": "2"}


@pytest.mark.parametrize(
    ("payload", "implied"),
    [(AWS_DMS_PAYLOAD, {"field": "Op", "marker": "D"}),
     (MYSQL_DEBEZIUM_PAYLOAD, {"field": "_change_operation_type", "marker": "d"}),
     (POSTGRES_DEBEZIUM_PAYLOAD, {"field": "_change_operation_type", "marker": "d"}),
     (DEFAULT_PAYLOAD, {})],
)  # fmt: skip
def test_old_change_feed_payloads_imply_a_delete_marker_below_version_9(payload: str, implied: dict[str, str]) -> None:
    for version in (6, 8):
        assert collect_merge_properties({}, PREFIX, DELETE_KEYS, version, payload) == implied
    assert collect_merge_properties({}, PREFIX, DELETE_KEYS, 9, payload) == {}


def test_a_stored_delete_marker_beats_the_implied_one() -> None:
    found = collect_merge_properties({"p.field": "kind"}, PREFIX, DELETE_KEYS, 6, AWS_DMS_PAYLOAD)
    assert found == {"field": "kind", "marker": "D"}
