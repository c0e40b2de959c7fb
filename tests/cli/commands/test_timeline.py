from __future__ import annotations

import json

import pytest


@pytest.mark.parametrize(
    "name", ["basic_mor_v9_part", "basic_mor_v6_part", "inflight_last_mor_v6", "clustering_pending_cow_v9"]
)
def test_instants_are_the_table_s(hoodie, corpus, corpus_case, name: str) -> None:
    found = json.loads(hoodie("timeline", corpus(name), "--json").stdout)
    known = {commit["instant"]: commit for commit in corpus_case(name)["commits"]}
    assert set(known) <= {row["instant"] for row in found}
    assert [row["instant"] for row in found] == sorted(row["instant"] for row in found)
    for row in found:
        if row["instant"] in known:
            assert row["action"] == known[row["instant"]]["action"]
            assert row["state"] == known[row["instant"]]["state"]


def test_writes_say_what_they_did(hoodie, corpus) -> None:
    found = json.loads(hoodie("timeline", corpus("event_time_deletes_mor_v9"), "--json").stdout)
    changes = [(row["operation"], row["inserts"], row["updates"], row["deletes"]) for row in found]
    assert changes == [
        ("INSERT", 8, 0, 0),
        ("UPSERT", 0, 3, 0),
        ("DELETE", 0, 0, 5),
        ("UPSERT", 0, 2, 0),
        ("DELETE", 0, 0, 1),
    ]
    shown = hoodie("timeline", corpus("event_time_deletes_mor_v9"), env={"COLUMNS": "80"}).stdout
    assert "+8" in shown
    assert "~3" in shown
    assert "-5" in shown
    assert all(row["instant"] in shown for row in found)


def test_unfinished_instants_are_named_so(hoodie, corpus) -> None:
    assert "inflight" in hoodie("timeline", corpus("inflight_last_mor_v6")).stdout


def test_empty_timeline(hoodie, corpus) -> None:
    table = corpus("empty_mor_v9")
    instants = json.loads(hoodie("timeline", table, "--json").stdout)
    done = hoodie("timeline", table)
    assert bool(instants) != ("nothing has been committed" in done.stderr)


@pytest.mark.parametrize("name", ["archived_timeline_mor_v9", "archived_timeline_mor_v6"])
def test_the_archive_is_listed_page_by_page(hoodie, corpus, name: str) -> None:
    whole = json.loads(hoodie("timeline", corpus(name), "--archived", "--json").stdout)
    active = json.loads(hoodie("timeline", corpus(name), "--json").stdout)
    assert [row for row in whole if not row["archived"]] == active
    assert any(row["archived"] and row["operation"] for row in whole)
    found, before = [], ()
    while True:
        done = hoodie("timeline", corpus(name), "--archived", "--limit", 4, *before, "--json")
        page = json.loads(done.stdout)
        found = [*page, *found]
        if f"--before {page[0]['instant']}" not in done.stderr:
            break
        before = ("--before", page[0]["instant"])
    assert found == whole
    shown = hoodie("timeline", corpus(name), "--archived", env={"COLUMNS": "100"}).stdout
    assert "archived" in shown
    assert "active" in shown
    assert "no instants before" in hoodie("timeline", corpus(name), "--before", "0").stderr
    assert "digits" in hoodie("timeline", corpus(name), "--before", "yesterday", status=2).stderr


def test_bars_show_commits_over_time(hoodie, corpus) -> None:
    shown = hoodie("timeline", corpus("basic_mor_v9_part"), "--plot", env={"COLUMNS": "80"}).stdout
    assert "commits by " in shown
    assert "█" in shown
    assert max(map(len, shown.splitlines())) <= 80
