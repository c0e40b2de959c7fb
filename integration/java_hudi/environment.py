"""Where Java Hudi's side runs: a Python with PySpark 3.5, and the bundle's jar.

``HOODIE_JAVA_PYTHON`` and ``HUDI_BUNDLE_JAR`` name them; what is not named is made: the environment as ``.venv-java``
beside the sources, the jar by Maven. ``python -m integration.java_hudi.environment`` makes both (``make java-env``).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from hoodie_py.cli.commands.doctor import find_java

HUDI = "1.2.0"
ARTIFACT = "hudi-spark3.5-bundle_2.12"
PYSPARK = "pyspark==3.5.*"
ROOT = Path(__file__).parents[2]
_MINUTES = 30


class JavaHudiMissingError(Exception):
    """What cannot be made here for want of Java or Maven; the text says what to install."""


@dataclass(frozen=True, slots=True)
class JavaHudi:
    """The command of a Python that has PySpark 3.5, and the jar of the Hudi bundle."""

    python: str
    jar: str


def find_or_make() -> JavaHudi:
    """Return what is there, and make what is not.

    Raises:
        JavaHudiMissingError: there is no Java, or no jar and no Maven.
        RuntimeError: pip or Maven failed.
    """
    if find_java() is None:
        raise JavaHudiMissingError("Java Hudi needs Java 11 or 17, and none was found; install it and set JAVA_HOME")
    return JavaHudi(os.environ.get("HOODIE_JAVA_PYTHON") or _python(), os.environ.get("HUDI_BUNDLE_JAR") or _jar())


def _python() -> str:
    folder = ROOT / ".venv-java"
    python, ready = folder / "bin" / "python", folder / ".ready"
    if not ready.exists():
        _run(sys.executable, "-m", "venv", "--clear", str(folder))
        _run(str(python), "-m", "pip", "install", "--quiet", PYSPARK)
        ready.touch()
    return str(python)


def _jar() -> str:
    jar = Path.home() / ".m2" / "repository" / "org" / "apache" / "hudi" / ARTIFACT / HUDI / f"{ARTIFACT}-{HUDI}.jar"
    if jar.exists():
        return str(jar)
    maven = shutil.which("mvn")
    if maven is None:
        raise JavaHudiMissingError(
            "Java Hudi is fetched by Maven, and there is no mvn; install it (Debian, Ubuntu: apt install maven; "
            f"macOS: brew install maven) or set HUDI_BUNDLE_JAR to a {ARTIFACT}-{HUDI}.jar"
        )
    _run(maven, "-B", "-q", "dependency:get", f"-Dartifact=org.apache.hudi:{ARTIFACT}:{HUDI}", "-Dtransitive=false")
    if not jar.exists():
        raise RuntimeError(f"Maven put the bundle elsewhere than {jar}: set HUDI_BUNDLE_JAR to where it is")
    return str(jar)


def _run(*command: str) -> None:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60 * _MINUTES, check=False, stdin=subprocess.DEVNULL
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    try:
        found = find_or_make()
    except JavaHudiMissingError as missing:  # the tests say so as well, and fail where CI is set
        print(f"Note: {missing}. Tests beside Java Hudi are left out.", file=sys.stderr)
    else:
        print(f"Java Hudi {HUDI}: {found.python}, {found.jar}", file=sys.stderr)
