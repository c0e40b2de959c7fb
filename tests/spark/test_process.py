"""The garbage collector's work in Spark's Python processes between two queries."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("pyspark", reason="NOT TESTED: pyspark is not installed")

_PROGRAM = """
import gc
import weakref
from hoodie_py.spark.process import freeze_imports

class Node:
    pass

def cycle():
    node = Node()
    node.itself = node
    return weakref.ref(node)

before = cycle()
freeze_imports()
assert before() is None, "garbage was kept"
frozen = gc.get_freeze_count()
assert frozen > 1000 > len(gc.get_objects()), "imports are still looked through"
after = cycle()
freeze_imports()
assert gc.get_freeze_count() == frozen, "a later query was kept"
gc.collect()
assert after() is None, "garbage of a later query is not collected"
"""


def test_imports_are_no_longer_looked_through_but_garbage_goes() -> None:
    run = subprocess.run([sys.executable, "-c", _PROGRAM], check=False, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
