"""Where Flink's side runs: the jars of Flink 1.17 and Hudi 0.14, fetched by Maven into ``.flink`` beside the sources.

``python -m integration.flink.environment`` fetches them; so do the tests.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from hoodie_py.cli.commands.doctor import find_java

HERE = Path(__file__).parent
JARS = HERE.parents[1] / ".flink"
_SECONDS = 1800


class FlinkMissingError(Exception):
    """What cannot be fetched here for want of Java or Maven; the text says what to install."""


def find_or_fetch() -> Path:
    """Return the folder with the jars, which are fetched where they are missing.

    Raises:
        FlinkMissingError: there is no Java or no Maven.
        RuntimeError: Maven failed.
    """
    if find_java() is None:
        raise FlinkMissingError("Flink needs Java 11 or 17, and none was found; install it and set JAVA_HOME")
    ready = JARS / ".ready"
    if ready.exists():
        return JARS
    maven = shutil.which("mvn")
    if maven is None:
        raise FlinkMissingError(
            "Flink is fetched by Maven, and there is no mvn; install it (Debian: apt install maven)"
        )
    goal = ("dependency:copy-dependencies", f"-DoutputDirectory={JARS}", "-DincludeScope=runtime")
    command = (maven, "-B", "-q", "-f", str(HERE / "pom.xml"), *goal)
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=_SECONDS, check=False, stdin=subprocess.DEVNULL
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    ready.touch()
    return JARS


if __name__ == "__main__":
    try:
        print(f"Flink: {find_or_fetch()}")
    except FlinkMissingError as missing:
        sys.exit(str(missing))
