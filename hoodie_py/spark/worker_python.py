"""Which Python the workers of a local Spark session run, and whether it can read tables.

Spark starts ``PYSPARK_PYTHON``, or else the first ``python3`` of the PATH, which may not be the Python that runs the
program. Then the first query fails with a ModuleNotFoundError from deep inside Spark.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

from hoodie_py.errors import HoodieWarning
from hoodie_py.spark.process import is_connect

_SECONDS = 20
_NEEDED = ("hoodie_py", "numpy", "pyarrow", "pyspark")
_ASK = (
    "import sys; from importlib.util import find_spec; print('%d.%d' % sys.version_info[:2], "
    "*(name for name in sys.argv[1:] if find_spec(name) is None))"
)


def find_worker_problem(command: str | None = None) -> str | None:
    """Return a sentence that says what is wrong with the workers' Python, and what to do; None if nothing is wrong.

    ``command``: what Spark starts; None for what a new session on this machine would start. The Python is asked what it
    can import, without importing it.
    """
    command = command or os.environ.get("PYSPARK_PYTHON") or "python3"
    remedy = f"Set PYSPARK_PYTHON={sys.executable} before the session starts."
    path = shutil.which(command)
    if path is None:
        return f"Spark's workers would run {command}, which is not there. {remedy}"
    if Path(path).absolute() == Path(sys.executable).absolute():
        return None
    try:
        done = subprocess.run(  # noqa: S603 - the command that Spark itself runs
            [path, "-c", _ASK, *_NEEDED], capture_output=True, text=True, timeout=_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"Spark's workers would run {path}, which does not run ({type(error).__name__}). {remedy}"
    version, *lacking = done.stdout.split() or [""]
    ours = "{}.{}".format(*sys.version_info[:2])
    if version != ours:
        return f"Spark's workers run {path}, which is Python {version}; this is Python {ours}. {remedy}"
    if lacking:
        return f"Spark's workers run {path}, which has no {' and no '.join(lacking)}. {remedy}"
    return None


def warn_of_worker_python(spark: Any) -> None:
    """Warn if the workers of a session on this machine cannot read tables; workers elsewhere are not checked."""
    if is_connect(spark):
        return
    context = spark.sparkContext
    if not context.master.startswith("local"):
        return
    problem = find_worker_problem(context.pythonExec)
    if problem is not None:
        warnings.warn(problem, HoodieWarning, stacklevel=3)
