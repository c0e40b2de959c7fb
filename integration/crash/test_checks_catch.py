"""The crash test finds what it is for: each sabotage of the writer shows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hoodie_py import CommitStateUnknownError
from hoodie_py.writer.rollback import attempt
from hoodie_py.writer.services import clean, planned_service
from hoodie_py.writer.transaction import commit_protocol
from hoodie_storage import local
from integration.crash.__main__ import main
from integration.crash.faults import KILL_AFTER, KILL_BEFORE, KILL_HALF_WAY, LOST_FOR_GOOD
from integration.crash.operations import OPERATIONS, QUICK
from integration.crash.stores import Folder
from integration.crash.tables import table
from integration.crash.trials import Bench, Broken


def found(folder: Folder, operation: str, ending: str, fault: str, name: str = "mdt_files_mor_v9") -> str:
    """Cut an operation short at the last call whose path ends so, and return what the checks say."""
    bench = Bench(folder, table(name), OPERATIONS[operation], QUICK, name, "machine")
    bench.undo_first = False
    number = max(at for at, (verb, path) in enumerate(bench.calls) if path.endswith(ending) and verb == "create")
    return " ".join(bench.trial(number, fault).problems)


@pytest.mark.parametrize(
    ("operation", "ending", "fault"),
    [("run", ".commit", LOST_FOR_GOOD), ("run", ".commit", KILL_BEFORE), ("run", ".commit", KILL_HALF_WAY),
     ("clean", ".clean", KILL_AFTER)],
)  # fmt: skip
def test_nothing_is_found_where_nothing_is_wrong(folder: Folder, operation: str, ending: str, fault: str) -> None:
    assert found(folder, operation, ending, fault) == ""


def test_cleaning_up_after_an_unknown_outcome(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    class Never(CommitStateUnknownError):
        """Nobody raises this."""

    monkeypatch.setattr(commit_protocol, "CommitStateUnknownError", Never)
    said = found(folder, "run", ".commit", LOST_FOR_GOOD)
    assert "cleaned up although the state is unknown" in said
    assert "rows are others" in said or "what follows failed" in said


@pytest.mark.parametrize(("module", "operation", "ending"), [(attempt, "run", ".commit"), (clean, "clean", ".clean")])
def test_the_metadata_table_ahead_of_the_timeline(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, module: Any, operation: str, ending: str
) -> None:
    monkeypatch.setattr(module, "undo_metadata_commit", lambda *_: None)
    assert "metadata table has a commit of this instant" in found(folder, operation, ending, KILL_BEFORE)


def test_a_commit_before_its_files_are_right(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt, "remove_files", lambda *_, **__: 0)
    monkeypatch.setattr(planned_service, "remove_files", lambda *_, **__: 0)
    assert "orphan" in found(folder, "run", ".commit", KILL_BEFORE)


def test_a_write_that_can_be_torn(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    def create(self: Any, key: str, data: bytes) -> None:
        Path(key).parent.mkdir(parents=True, exist_ok=True)
        with Path(key).open("xb") as file:
            local._write(file, data)

    monkeypatch.setattr(local.LocalBackend, "create", create)
    assert found(folder, "run", ".commit", KILL_HALF_WAY) != ""


def test_a_clean_that_takes_too_much(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    real: Callable[..., None] = clean._delete_files

    def delete(files: Any, plan: Any) -> None:
        real(files, plan)
        partition = next(iter(plan.files))
        for info in files.list(partition):
            if info.name.endswith(".parquet"):
                files.delete(info.path)

    monkeypatch.setattr(clean, "_delete_files", delete)
    with pytest.raises(Broken, match=r"(rows are others|what follows failed)"):
        found(folder, "clean", ".clean", KILL_BEFORE)


def test_a_run_whose_workers_end_is_no_success(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--stores", "local", "--tables", "no_such_table", "--operations", "run", "--workers", "1"]) == 1
    assert "NOT FINISHED" in capfd.readouterr().err


def test_an_error_that_is_no_refusal_is_a_violation(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def delete(*_: Any) -> None:
        raise ValueError("not one of ours")

    monkeypatch.setattr(clean, "_delete_files", delete)
    with pytest.raises(Broken, match="not one of ours"):
        Bench(folder, table("mdt_files_mor_v9"), OPERATIONS["clean"], QUICK, "mdt_files_mor_v9", "machine")
    assert main(["--stores", "local", "--workers", "1", "--tables", "mdt_files_mor_v9", "--operations", "clean"]) == 1
    assert "VIOLATION undisturbed: clean of mdt_files_mor_v9 on local" in capsys.readouterr().out
