"""A part of the sweep: truncations and flipped bits of real files (``python -m tests.fuzz.sweep`` takes all)."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hoodie_py.errors import CorruptFileError, HoodieError
from tests.fuzz import damage
from tests.fuzz.damage import NUMBER, count, damaged
from tests.fuzz.subjects import Answer, Subject, subjects
from tests.fuzz.sweep import sweep

STRIDE = 61
SAMPLE = (
    "log/basic_mor_v6_part",
    "log/basic_mor_v9_part",
    "log/blocks_hfile_mor_v8",
    "log/blocks_parquet_mor_v8",
    "log/is_deleted_column_mor_v9",
    "log/many_row_groups_mor_v9",
    "log/rollback_completed_mor_v6",
    "archive/history",
    "archive/log",
    "deletes/18",
    "deletes/25",
    "positions/6",
    "properties/basic_mor_v9_part",
)


def test_damaged_files_are_refused_reported_or_read() -> None:
    timeline = [name for name in subjects() if name.startswith("timeline/")][::3]
    cases = 0
    for tally in sweep([*SAMPLE, *timeline], STRIDE):
        assert not tally.problems, str(tally)
        assert tally.outcomes["refused"], str(tally)
        cases += tally.outcomes.total()
    assert cases > 3000


def test_the_kinds_of_files_that_matter_are_damaged() -> None:
    names = set(subjects())
    assert set(SAMPLE) <= names
    text = " ".join(names)
    kinds = (
        ".deltacommit",
        ".commit",
        ".clean",
        ".clean.requested",
        ".compaction.requested",
        ".rollback",
        ".rollback.requested",
    )
    assert all(f"{kind} " in f"{text} " for kind in (*kinds, ".replacecommit.requested", ".clustering.requested"))


def test_cases_cover_every_length_and_every_bit() -> None:
    data = b"\0\0"
    assert [damaged(data, "cut", number) for number in range(count(data, "cut"))] == [b"", b"\0"]
    flips = {damaged(data, "flip", number) for number in range(count(data, "flip"))}
    assert len(flips) == 16
    assert all(int.from_bytes(flip).bit_count() == 1 for flip in flips)


def subject(read: object) -> Subject:
    return Subject("made", b"\0" * 4, read, framing=frozenset({0}))  # type: ignore[arg-type]


def outcomes(read: object, tmp_path: Path, kind: str = "flip") -> dict[str, object]:
    note = tmp_path / "note"
    note.write_bytes(NUMBER.pack(0))
    try:
        return damage.run(subject(read), kind, range(4), note)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def test_an_untyped_exception_is_a_problem(tmp_path: Path) -> None:
    def read(data: bytes) -> Answer:
        return {b"\0\0\0\0": (1, 0)}[data]

    problems = outcomes(read, tmp_path)["problems"]
    assert [number for number, _ in problems] == [0, 1, 2, 3]  # type: ignore[attr-defined]


def test_another_answer_is_a_problem_in_framing_and_for_a_shorter_file(tmp_path: Path) -> None:
    def read(data: bytes) -> Answer:
        return data, 0

    assert "framing" in str(outcomes(read, tmp_path)["problems"])
    assert "lost rows" in str(outcomes(read, tmp_path, "cut")["problems"])


def test_memory_that_was_refused_is_a_problem_behind_a_typed_error(tmp_path: Path) -> None:
    def read(data: bytes) -> Answer:
        if data == b"\0\0\0\0":
            return 1, 0
        try:
            raise MemoryError("malloc of size 99")
        except MemoryError:
            raise CorruptFileError("damaged") from None

    found = outcomes(read, tmp_path)
    assert found["outcomes"] == {"refused": 4}
    assert "malloc of size 99" in str(found["problems"])


@pytest.mark.skipif(sys.platform != "linux", reason="signals and limits as Linux has them")
def test_a_hang_ends_the_process_and_leaves_the_number_of_the_case(tmp_path: Path) -> None:
    note = tmp_path / "note"
    note.write_bytes(NUMBER.pack(7))
    script = (
        "import sys; from pathlib import Path; from tests.fuzz import damage, subjects\n"
        "damage.CPU_SECONDS = 0.2\n"
        "read = lambda data: (1, 0) if data == b'1234' else [0 for _ in iter(int, 1)]\n"
        "hang = subjects.Subject('hang', b'1234', read)\n"
        "damage.subjects = lambda: {'hang': hang}\n"
        "damage.main(['hang', 'flip', '3', '9', '1', sys.argv[1]])\n"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", script, str(note)], capture_output=True, text=True, check=False, cwd=root
    )
    assert done.returncode == -signal.SIGPROF
    assert NUMBER.unpack(note.read_bytes()) == (3,)
    assert "damage.py" in done.stderr


@pytest.mark.parametrize("kind", ["base", "log", "properties"])
def test_the_chosen_files_of_whole_tables_matter_to_the_answer(kind: str) -> None:
    for case in ("basic_mor_v6_part", "basic_mor_v9_part"):
        chosen = subjects()[f"table/{case}/{kind}"]
        whole, _ = chosen.read(chosen.data)
        assert whole
        try:
            answer, _ = chosen.read(b"")
        except HoodieError:
            continue
        assert answer != whole


def test_flipped_bits_in_the_footer_of_the_newest_base_file() -> None:
    """It is read twice: for the table's schema and for its rows; Arrow reports damage by OSError as well."""
    base = subjects()["table/basic_mor_v9_part/base"]
    whole, _ = base.read(base.data)
    numbers = range(8 * (len(base.data) - int.from_bytes(base.data[-8:-4], "little") - 8), 8 * len(base.data), 149)
    outcomes = [damage.verdict(base, whole, "flip", number) for number in numbers]
    assert len(outcomes) > 50
    assert not [found for found in outcomes if found[1] is not None]
