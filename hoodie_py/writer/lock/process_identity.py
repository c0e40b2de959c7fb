"""Identify a process, so that another process can know for certain that it has ended.

On Linux the boot id, the namespace of process numbers, the number, and the start time identify a process. If one of
these is unknown, or belongs to another machine, nothing is certain, and the process does not count as ended.
"""

from __future__ import annotations

import json
import os
import socket
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = Path("/proc/self/ns/pid")
_LARGEST = 2**31
_BEGAN = 19  # index of the start time among the fields after the name in /proc/<number>/stat
_ENDED = frozenset("ZX")
_LONGEST = 2048


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """A process.

    Attributes:
        host: name of its machine or container.
        boot: boot id of the kernel; "" if unknown.
        namespace: the namespace of its process number.
        number: process id.
        began: start time in clock ticks since the boot.
    """

    host: str
    boot: str
    namespace: str
    number: int
    began: int

    @classmethod
    def read_own(cls) -> ProcessIdentity:
        """Return the identity of this process."""
        boot = namespace = ""
        with suppress(OSError):
            boot, namespace = _BOOT.read_text().strip(), str(_NAMESPACE.readlink())
        number = os.getpid()
        state = _read_state(number)
        return cls(socket.gethostname(), boot if state else "", namespace, number, state[1] if state else 0)

    def to_bytes(self, token: str) -> bytes:
        """Encode, with a token that differs for each use by one process."""
        return json.dumps({**asdict(self), "token": token}).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> ProcessIdentity | None:
        """Parse; None if the bytes are something else."""
        try:
            found = json.loads(data) if len(data) <= _LONGEST else None
        except (ValueError, RecursionError):
            return None
        if not isinstance(found, dict):
            return None
        host, boot, namespace = (found.get(name) for name in ("host", "boot", "namespace"))
        number, began = found.get("number"), found.get("began")
        if not isinstance(host, str) or not isinstance(boot, str) or not isinstance(namespace, str):
            return None
        if type(number) is not int or type(began) is not int or not 0 < number < _LARGEST:
            return None
        return cls(host, boot, namespace, number, began)

    def has_ended(self) -> bool:
        """Whether this process has certainly ended."""
        here = ProcessIdentity.read_own()
        if not self.boot or (self.host, self.boot, self.namespace) != (here.host, here.boot, here.namespace):
            return False
        try:
            os.kill(self.number, 0)
        except ProcessLookupError:
            return True
        except OSError:  # the process exists and belongs to another user
            pass
        # The number exists, but may belong to a later process: only the start time shows that.
        state = _read_state(self.number)
        return state is not None and (state[0] in _ENDED or state[1] != self.began)


def _read_state(number: int) -> tuple[str, int] | None:
    """Return a process's state and start time; None if the system does not show them."""
    try:
        process = Path(f"/proc/{number}")
        fields = (process / "stat").read_text(errors="replace").rpartition(")")[2].split()
        threads = len(list((process / "task").iterdir()))
    except OSError:
        return None
    if len(fields) <= _BEGAN or not fields[_BEGAN].isdigit():
        return None
    # A process whose main thread has ended looks like a zombie while other threads go on.
    return ("R" if threads > 1 else fields[0]), int(fields[_BEGAN])
