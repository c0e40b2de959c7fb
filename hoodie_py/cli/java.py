"""Find the Java that Spark would start, and check whether it is new enough."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

OLDEST_JAVA = 17
HOW_TO_INSTALL = (
    f"Install Java {OLDEST_JAVA} or newer (Debian, Ubuntu: apt install openjdk-17-jre-headless; "
    "macOS: brew install openjdk@17) and set JAVA_HOME if it is not on the PATH."
)


@dataclass(frozen=True, slots=True)
class Java:
    """A Java installation: its command and its feature version, such as 17."""

    command: str
    version: int

    @property
    def is_new_enough(self) -> bool:
        """Whether Spark 4 runs on it."""
        return self.version >= OLDEST_JAVA


def find_java() -> Java | None:
    """Return the Java of JAVA_HOME, or the one on the PATH if that is not set; None if it does not start."""
    home = os.environ.get("JAVA_HOME")
    command = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if command is None:
        return None
    try:
        said = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    return None if said.returncode or version is None else Java(command, int(version.group(1)))


def find_missing_for_spark() -> str | None:
    """Return what to install before PySpark can run; None if it can run. Packages are not imported."""
    from importlib.util import find_spec

    absent = [name for name in ("pyspark", "pandas") if find_spec(name) is None]
    if absent:
        return f"PySpark needs {' and '.join(absent)}: pip install 'hoodie_py[spark]'"
    java = find_java()
    if java is None:
        return f"PySpark needs Java, and none was found. {HOW_TO_INSTALL}"
    if not java.is_new_enough:
        return f"PySpark needs Java {OLDEST_JAVA}, and {java.command} is Java {java.version}. {HOW_TO_INSTALL}"
    return None
