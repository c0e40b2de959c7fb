"""The data source with Spark Connect, in another process, as a process has one kind of session."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.spark_custom import TABLE, make_custom

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.classic
@pytest.mark.spark
def test_a_connect_session_reads_registers_merges_and_compacts(
    java: int, corpus: Callable[[str], Path], corpus_copy: Callable[[str], Path], tmp_path: Path
) -> None:
    pytest.importorskip("pyspark.sql.connect.session", reason="NOT TESTED: pyspark's connect extra is not installed")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "storage")]),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    script = Path(__file__).with_name("spark_connect_session.py")
    done = subprocess.run(
        [
            sys.executable,
            str(script),
            str(corpus(TABLE)),
            str(make_custom(corpus_copy(TABLE))),
            str(corpus_copy(TABLE)),
        ],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert "connect works" in done.stdout, done.stderr[-4000:]
