"""Small files that ask for much are refused, or read with bounded time and memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hoodie_py.formats.log.framing import iterate_blocks
from tests.formats.log_writer import rollback
from tests.fuzz.bombs import BOMBS
from tests.fuzz.damage import FREE_BYTES, TIMES_THE_FILE

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(sys.platform != "linux", reason="memory and signals as Linux counts them")
@pytest.mark.parametrize("name", BOMBS)
def test_small_files_that_ask_for_much(name: str, tmp_path: Path) -> None:
    data = BOMBS[name].make()
    (tmp_path / "bomb").write_bytes(data)
    command = [sys.executable, "-m", "tests.fuzz.bombs", name, str(tmp_path / "bomb")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    result = json.loads(done.stdout)
    assert BOMBS[name].says in result["said"]
    assert result["bytes"] <= FREE_BYTES + TIMES_THE_FILE * len(data)


def test_as_many_blocks_as_a_log_file_may_have_are_read() -> None:
    assert sum(1 for _ in iterate_blocks(rollback("2", "1") * 2000)) == 2000
