"""No option of Java Hudi is taken in silence: each is honoured, refused, warned of, or passed over for a reason."""

from __future__ import annotations

import json

import pytest

from hoodie_py.options import undone
from hoodie_py.options.check import OF_WRITES, list_passed_over
from tests.corpus import ROOT

JAVA = ROOT / "tests" / "data" / "java_options.txt"
SPECIFICATION = ROOT.parent / "shared" / "spec" / "java_options.json"
HONOURED = {name for option in OF_WRITES for name in option.names}
TOLD = {name for each in (*undone.OF_READS, *undone.OF_WRITES) for name in each.option.names}


def read_java_names() -> dict[str, list[str]]:
    """Return Java's alternative names by key."""
    lines = [line.split() for line in JAVA.read_text().splitlines() if not line.startswith("#")]
    return {key: alternatives for key, *alternatives in lines}


def test_every_key_of_java_hudi_and_every_alternative_name_has_its_place() -> None:
    keys = read_java_names()
    assert len(keys) == 663
    names = {name for key, alternatives in keys.items() for name in (key, *alternatives)}
    assert sorted(names - HONOURED - TOLD - list_passed_over().keys()) == []


def test_alternative_names_of_honoured_keys_are_honoured() -> None:
    lacking = {
        name
        for key, alternatives in read_java_names().items()
        for name in alternatives
        if key in HONOURED and name not in HONOURED
    }
    assert not lacking


def test_what_is_passed_over_is_neither_honoured_nor_told_of() -> None:
    passed_over = list_passed_over()
    assert passed_over.keys().isdisjoint(HONOURED | TOLD)
    assert all(reason.endswith(".") for reason in passed_over.values())


def test_the_list_of_java_keys_is_that_of_the_specification() -> None:
    if not SPECIFICATION.is_file():
        pytest.skip("NOT TESTED: there is no specification beside this checkout")
    known = json.loads(SPECIFICATION.read_text())
    assert read_java_names() == {key: sorted(each["alternatives"]) for key, each in known.items()}
