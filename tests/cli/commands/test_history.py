from __future__ import annotations

import json


def test_the_life_of_a_key_is_shown_commit_by_commit(hoodie, corpus) -> None:
    shown = hoodie("history", corpus("event_time_deletes_mor_v6"), "k1", env={"COLUMNS": "300"}).stdout
    words = [line.split()[2] for line in shown.splitlines()[3:] if line]
    assert words == ["inserted", "updated", "deleted", "inserted"]
    assert "name=u, price=1.0, ts=30" in shown
    assert "id=k1, name=late" in shown


def test_programs_read_every_value(hoodie, corpus) -> None:
    table = corpus("event_time_deletes_mor_v9")
    found = json.loads(hoodie("history", table, "k1", "--json").stdout)
    assert [each["change"] for each in found["events"]] == ["inserted", "updated", "deleted", "inserted"]
    assert found["events"][1]["values"]["qty"] == 1
    assert found["events"][2]["values"] is None
    assert all((table / each["file"]).is_file() and each["completed"] for each in found["events"])
    assert found["is_complete"]


def test_what_was_cleaned_is_said(hoodie, corpus) -> None:
    done = hoodie("history", corpus("clean_cow_v9"), "k1")
    assert " written " in done.stdout
    assert "were cleaned" in done.stderr
    assert not json.loads(hoodie("history", corpus("clean_cow_v9"), "k1", "--json").stdout)["is_complete"]


def test_the_merger_of_the_table_is_asked_for(hoodie, corpus) -> None:
    done = hoodie("history", corpus("custom_highest_price_updates_mor_v9"), "k1", status=1)
    assert "merger" in done.stderr


def test_a_key_that_no_file_has_is_a_failure(hoodie, corpus) -> None:
    table = corpus("basic_mor_v9_part")
    assert "nobody" in hoodie("history", table, "nobody", status=1).stderr
    assert json.loads(hoodie("history", table, "nobody", "--json", status=1).stdout)["events"] == []
    assert "nobody" in hoodie("history", table, "k1", "--partition", "nobody", status=1).stderr
