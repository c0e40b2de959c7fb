"""Resolves how a table merges versions of a record, from its properties.

Tables of version 9 store the merge mode, and not the payload class from which it was derived. Tables of version 6 store
a payload class, a merge strategy id or both; tables of version 8 also store the mode. ``infer_merge`` resolves these as
Hudi's HoodieTableConfig.inferMergingConfigsForPreV9Table does:

* Without payload class and strategy id: the stored mode counts; without it, event time if the table has ordering
  fields, else commit time.
* Version 6: the payload class decides, then the strategy id. Version 8: the strategy id decides, then the payload
  class, and the two must not contradict each other. A stored mode must equal the result.
* A reader of a version 6 table without payload class assumes the default payload class (event time).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from hoodie_py.errors import InvalidTableError

EVENT_TIME_STRATEGY_ID = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
COMMIT_TIME_STRATEGY_ID = "ce9acb64-bde0-424c-9b91-f6ebba25356d"
CUSTOM_STRATEGY_ID = "1897ef5f-18bc-4557-939c-9d6a8afd1519"
PAYLOAD_STRATEGY_ID = "00000000-0000-0000-0000-000000000000"

_MODEL = "org.apache.hudi.common.model"
DEFAULT_PAYLOAD = f"{_MODEL}.DefaultHoodieRecordPayload"
EVENT_TIME_PAYLOAD = f"{_MODEL}.EventTimeAvroPayload"
OVERWRITE_WITH_LATEST_PAYLOAD = f"{_MODEL}.OverwriteWithLatestAvroPayload"
OVERWRITE_NON_DEFAULTS_PAYLOAD = f"{_MODEL}.OverwriteNonDefaultsWithLatestAvroPayload"
PARTIAL_UPDATE_PAYLOAD = f"{_MODEL}.PartialUpdateAvroPayload"
AWS_DMS_PAYLOAD = f"{_MODEL}.AWSDmsAvroPayload"
MYSQL_DEBEZIUM_PAYLOAD = f"{_MODEL}.debezium.MySqlDebeziumAvroPayload"
POSTGRES_DEBEZIUM_PAYLOAD = f"{_MODEL}.debezium.PostgresDebeziumAvroPayload"

PARTIAL_UPDATE_MODES = ("IGNORE_DEFAULTS", "FILL_UNAVAILABLE")

# Merge properties: a table stores them under a prefix, and a user may set them as options.
DELETE_FIELD = "hoodie.payload.delete.field"  # column whose value marks a row as deleted ...
DELETE_MARKER = "hoodie.payload.delete.marker"  # ... when it equals this text
UNAVAILABLE_VALUE = "hoodie.write.partial.update.unavailable.value"  # placeholder that keeps the older value


class MergeMode(StrEnum):
    """Which of two versions of a record a merge keeps (Hudi RecordMergeMode).

    Examples:
        >>> trips.config.merge_mode is MergeMode.EVENT_TIME_ORDERING
        True
    """

    COMMIT_TIME_ORDERING = "COMMIT_TIME_ORDERING"
    EVENT_TIME_ORDERING = "EVENT_TIME_ORDERING"
    CUSTOM = "CUSTOM"


@dataclass(frozen=True, slots=True)
class MergeConfig:
    """The resolved merge configuration of a table.

    ``strategy_id`` names the merger if ``mode`` is CUSTOM. ``payload_class`` counts only with the strategy id
    ``PAYLOAD_STRATEGY_ID``.
    """

    mode: MergeMode
    strategy_id: str | None
    payload_class: str | None

    @property
    def is_payload_based(self) -> bool:
        """Whether records merge by the rules of a Java payload class."""
        return self.mode is MergeMode.CUSTOM and self.strategy_id == PAYLOAD_STRATEGY_ID


def replace_old_package(class_name: str) -> str:
    """Replace the package ``com.uber.hoodie`` of old tables by ``org.apache.hudi`` in a class name."""
    return class_name.replace("com.uber.hoodie", "org.apache.hudi")


_MODE_OF_PAYLOAD = {
    DEFAULT_PAYLOAD: MergeMode.EVENT_TIME_ORDERING,
    EVENT_TIME_PAYLOAD: MergeMode.EVENT_TIME_ORDERING,
    OVERWRITE_WITH_LATEST_PAYLOAD: MergeMode.COMMIT_TIME_ORDERING,
}
_MODE_OF_STRATEGY = {
    EVENT_TIME_STRATEGY_ID: MergeMode.EVENT_TIME_ORDERING,
    COMMIT_TIME_STRATEGY_ID: MergeMode.COMMIT_TIME_ORDERING,
}
_STRATEGY_OF_MODE = {mode: strategy_id for strategy_id, mode in _MODE_OF_STRATEGY.items()}
_DELETE_MARKER_OF_PAYLOAD = {
    AWS_DMS_PAYLOAD: ("Op", "D"),
    MYSQL_DEBEZIUM_PAYLOAD: ("_change_operation_type", "d"),
    POSTGRES_DEBEZIUM_PAYLOAD: ("_change_operation_type", "d"),
}


def infer_merge(
    version: int, mode: MergeMode | None, payload: str | None, strategy: str | None, *, has_ordering: bool
) -> MergeConfig:
    """Resolve mode, payload class and strategy id of a table older than version 9.

    Raises:
        InvalidTableError: the values contradict each other, or CUSTOM names neither a payload class nor a strategy.
    """
    inferred = _infer_mode(version, mode, payload, strategy, has_ordering=has_ordering)
    if mode is not None and mode is not inferred:
        raise InvalidTableError(f"Merge mode {mode} contradicts payload class {payload} and merge strategy {strategy}.")
    if inferred is not MergeMode.CUSTOM:
        return MergeConfig(inferred, _STRATEGY_OF_MODE[inferred], _find_payload(inferred, payload))
    if not payload and not strategy:
        raise InvalidTableError("Merge mode CUSTOM needs a merge strategy id or a payload class.")
    if version < 8:
        resolved = PAYLOAD_STRATEGY_ID if payload else strategy
    else:
        resolved = strategy or PAYLOAD_STRATEGY_ID
    if resolved == PAYLOAD_STRATEGY_ID and not payload:
        raise InvalidTableError("The payload-based merge strategy needs a payload class.")
    return MergeConfig(MergeMode.CUSTOM, resolved, payload or DEFAULT_PAYLOAD)


def _infer_mode(
    version: int, mode: MergeMode | None, payload: str | None, strategy: str | None, *, has_ordering: bool
) -> MergeMode:
    by_payload = _MODE_OF_PAYLOAD.get(payload, MergeMode.CUSTOM) if payload else None
    by_strategy = _MODE_OF_STRATEGY.get(strategy, MergeMode.CUSTOM) if strategy else None
    if version < 8:
        inferred = by_payload or by_strategy
    else:
        if by_strategy not in (None, MergeMode.CUSTOM) and by_payload not in (None, by_strategy):
            raise InvalidTableError(f"Merge strategy {strategy} contradicts payload class {payload}.")
        inferred = by_strategy or by_payload
    if inferred is not None:
        return inferred
    return mode or (MergeMode.EVENT_TIME_ORDERING if has_ordering else MergeMode.COMMIT_TIME_ORDERING)


def _find_payload(mode: MergeMode, payload: str | None) -> str:
    if mode is MergeMode.COMMIT_TIME_ORDERING:
        return OVERWRITE_WITH_LATEST_PAYLOAD
    return EVENT_TIME_PAYLOAD if payload == EVENT_TIME_PAYLOAD else DEFAULT_PAYLOAD


def resolve_merge(
    version: int, mode: MergeMode | None, payload: str | None, strategy: str | None, *, has_ordering: bool
) -> MergeConfig:
    """Resolve the merge configuration that a reader of the table uses (Hudi HoodieReaderContext.initRecordMerger).

    A version 6 table without payload class has the payload class implied by its mode, else the default one, unless its
    strategy id belongs to a custom merger. For a version 9 table the stored values count.

    Raises InvalidTableError if the values contradict each other.
    """
    if version >= 9 and mode is not None:
        return _resolve_stored(mode, payload, strategy)
    if version < 8 and not payload and (not strategy or strategy in _MODE_OF_STRATEGY):
        commit_time = mode is MergeMode.COMMIT_TIME_ORDERING
        payload = OVERWRITE_WITH_LATEST_PAYLOAD if commit_time else DEFAULT_PAYLOAD
    return infer_merge(version, mode, payload, strategy, has_ordering=has_ordering)


def _resolve_stored(mode: MergeMode, payload: str | None, strategy: str | None) -> MergeConfig:
    if mode is not MergeMode.CUSTOM:
        if strategy and _MODE_OF_STRATEGY.get(strategy, MergeMode.CUSTOM) is not mode:
            raise InvalidTableError(f"Merge mode {mode} contradicts merge strategy {strategy}.")
        return MergeConfig(mode, _STRATEGY_OF_MODE[mode], None)
    if strategy in _MODE_OF_STRATEGY:
        raise InvalidTableError(f"Merge mode {mode} contradicts merge strategy {strategy}.")
    if not strategy and not payload:
        raise InvalidTableError("Merge mode CUSTOM needs a merge strategy id or a payload class.")
    if strategy == PAYLOAD_STRATEGY_ID and not payload:
        raise InvalidTableError("The payload-based merge strategy needs a payload class.")
    return MergeConfig(mode, strategy or PAYLOAD_STRATEGY_ID, payload)


def collect_merge_properties(
    properties: Mapping[str, str], prefix: str, delete_keys: tuple[str, str], version: int, payload: str | None
) -> Mapping[str, str]:
    """Collect the table's stored properties for its merger (Hudi HoodieTableConfig.getTableMergeProperties).

    These are all keys under ``prefix``, without the prefix, keys and values trimmed. In tables older than version 9 the
    AWS DMS and Debezium payload classes imply the delete field and marker, under the two keys of ``delete_keys``.
    """
    found = {
        key.removeprefix(prefix).strip(): value.strip() for key, value in properties.items() if key.startswith(prefix)
    }
    found.pop("", None)
    if version < 9 and payload in _DELETE_MARKER_OF_PAYLOAD:
        for key, value in zip(delete_keys, _DELETE_MARKER_OF_PAYLOAD[payload], strict=True):
            found.setdefault(key, value)
    return found
