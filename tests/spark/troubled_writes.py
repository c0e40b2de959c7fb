"""Steps that write files, to which happens what happens in clusters; a module of its own, as workers import it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from hoodie_py.errors import StorageError
from hoodie_py.spark.attempts import pack_failure
from hoodie_py.spark.write_files import WriteFiles


class FailsLast(WriteFiles):
    """Files are written, and then the machine is lost."""

    def _run_task(self, label: int, payloads: Sequence[pa.Buffer]) -> pa.RecordBatch:
        super()._run_task(label, payloads)
        return pack_failure(StorageError("The machine went away."))


class Breaks(WriteFiles):
    """Fails in a way that nobody thought of."""

    def _run_task(self, label: int, payloads: Sequence[pa.Buffer]) -> pa.RecordBatch:
        super()._run_task(label, payloads)
        raise ZeroDivisionError("one over nothing")


class RunsTwice(WriteFiles):
    """Two attempts write whole files, as under speculation; one is reported."""

    def _run_task(self, label: int, payloads: Sequence[pa.Buffer]) -> pa.RecordBatch:
        super()._run_task(label, payloads)
        return super()._run_task(label, payloads)


class LosesRows(WriteFiles):
    """Gets other rows than were counted, as from a DataFrame whose rows change."""

    def _run_task(self, label: int, payloads: Sequence[pa.Buffer]) -> pa.RecordBatch:
        return super()._run_task(label, [*payloads, *payloads])
