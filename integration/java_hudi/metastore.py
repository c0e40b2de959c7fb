"""A real Hive Metastore over Thrift, its database an embedded Derby: the server class is among PySpark 3.5's jars."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hoodie_py.cli.commands.doctor import find_java
from integration.java_hudi.environment import JavaHudi

_SERVER = "org.apache.hadoop.hive.metastore.HiveMetaStore"
_FIND_JARS = "import pathlib, pyspark; print(pathlib.Path(pyspark.__file__).parent / 'jars')"
_SECONDS = 120.0


@contextmanager
def run_metastore(environment: JavaHudi, folder: Path) -> Iterator[str]:
    """Run a metastore whose database and log (``metastore.log``) lie in a folder, and yield its address."""
    jars = subprocess.run([environment.python, "-c", _FIND_JARS], check=True, capture_output=True, text=True).stdout
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    settings = {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder / 'metastore'};create=true",
        "datanucleus.schema.autoCreateAll": "true",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.warehouse.dir": str(folder / "warehouse"),
    }
    given = [word for name, value in settings.items() for word in ("--hiveconf", f"{name}={value}")]
    java = find_java()
    command = [
        "java" if java is None else java.command, "-XX:TieredStopAtLevel=1", "-Xmx512m",
        f"-Dderby.system.home={folder}", "-Dhive.async.log.enabled=false",  # PySpark lacks what that needs
    ]  # fmt: skip
    with (folder / "metastore.log").open("wb") as log:
        server = subprocess.Popen(
            [*command, "-cp", f"{jars.strip()}/*", _SERVER, "-p", str(port), *given],
            stdout=log, stderr=log, cwd=folder,
        )  # fmt: skip
    try:
        _wait(server, port, folder / "metastore.log")
        yield f"thrift://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def _wait(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until = time.monotonic() + _SECONDS
    while server.poll() is None and time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise RuntimeError(f"the metastore does not answer\n{log.read_text(errors='replace')[-3000:]}")
