from __future__ import annotations

import json


def test_every_version_is_shown_in_merge_order_with_what_became_of_it(hoodie, corpus) -> None:
    table = corpus("event_time_deletes_mor_v6")
    (history,) = json.loads(hoodie("explain", table, "k1", "--json").stdout)
    assert [step["version"]["source"] for step in history["steps"]] == [
        "data block",
        "delete block",
        "data block",
        "base file",
    ]
    assert [step["winner"] for step in history["steps"]] == ["newer", "newer", "newer", "older"]
    assert history["outcome"]["name"] == "late"
    assert history["steps"][1]["version"]["values"] is None
    assert all((table / step["version"]["path"]).is_file() for step in history["steps"])


def test_a_deleted_record_is_said_to_be_deleted(hoodie, corpus) -> None:
    table = corpus("event_time_deletes_mor_v6")
    deleted = [key for key in ("k0", "k2", "k4") if "deleted" in hoodie("explain", table, key).stdout]
    assert deleted
    (history,) = json.loads(hoodie("explain", table, deleted[0], "--json").stdout)
    assert history["outcome"] is None


def test_people_read_the_reason(hoodie, corpus) -> None:
    shown = hoodie("explain", corpus("basic_mor_v9_part"), "k2", env={"COLUMNS": "300"}).stdout
    assert "loses to 1: ordering value 10 against 20" in shown
    assert "A snapshot shows: id=k2" in shown


def test_a_record_that_was_never_updated_does_not_lose(hoodie, corpus) -> None:
    shown = hoodie("explain", corpus("basic_cow_v9_part"), "k0", env={"COLUMNS": "300"}).stdout
    assert "stays: the only version" in shown
    assert "loses" not in shown


def test_a_version_that_won_and_went_is_told_from_the_one_that_stays(hoodie, corpus) -> None:
    shown = hoodie("explain", corpus("event_time_deletes_mor_v6"), "k1", env={"COLUMNS": "300"}).stdout
    assert shown.count(" stays: ") == 1
    assert "replaced by 3: first version in the log" in shown


def test_a_row_that_was_written_again_does_not_lose(hoodie, corpus) -> None:
    shown = hoodie("explain", corpus("flink_mor_bucket"), "k2", env={"COLUMNS": "300"}).stdout
    assert "same values as 2: first version in the log" in shown
    assert "stays: ordering value 10 against 10" in shown
    assert "loses to 2: ordering value 5 against 10" in shown


def test_a_key_that_no_file_has_is_a_failure(hoodie, corpus) -> None:
    done = hoodie("explain", corpus("basic_mor_v9_part"), "nobody", status=1)
    assert "nobody" in done.stderr
    assert json.loads(hoodie("explain", corpus("basic_mor_v9_part"), "nobody", "--json", status=1).stdout) == []
