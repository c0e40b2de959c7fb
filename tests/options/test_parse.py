from __future__ import annotations

from hoodie_py.options import read as option_keys
from hoodie_py.options.parse import flag, option
from hoodie_py.options.read import CUSTOM_MERGER_CLASSES, METADATA_ENABLE, QUERY_TYPE


def test_options_have_older_names_and_defaults() -> None:
    assert option({"hoodie.datasource.query.type": "incremental"}, QUERY_TYPE) == "incremental"
    assert option({"hoodie.datasource.view.type": "read_optimized"}, QUERY_TYPE) == "read_optimized"
    assert option({"hoodie.datasource.write.record.merger.impls": " a,b "}, CUSTOM_MERGER_CLASSES) == "a,b"
    both = {"hoodie.datasource.view.type": "read_optimized", "hoodie.datasource.query.type": "snapshot"}
    assert option(both, QUERY_TYPE) == "snapshot"
    assert option({QUERY_TYPE: " "}, QUERY_TYPE, "snapshot") == "snapshot"
    assert option({}, QUERY_TYPE) is None


def test_flags_are_read_as_java_reads_them() -> None:
    assert flag({}, METADATA_ENABLE, default=True)
    assert flag({METADATA_ENABLE: "TRUE"}, METADATA_ENABLE, default=False)
    assert not flag({METADATA_ENABLE: "yes"}, METADATA_ENABLE, default=True)


def test_every_key_is_one_of_hudis() -> None:
    keys = {name: value for name, value in vars(option_keys).items() if name.isupper() and isinstance(value, str)}
    others = {"AS_OF_INSTANT", "SKIP_MERGE", "READ_THREADS"}
    assert option_keys.READ_THREADS.startswith("hoodie_py.")  # Hudi has no such setting
    assert all(value.startswith("hoodie.") for name, value in keys.items() if name not in others)
    assert len(set(keys.values())) == len(keys)
