"""Jobs of a write run side by side, the largest first; a failure stops those that have not begun."""

from __future__ import annotations

import pytest

from hoodie_py.errors import StorageError
from hoodie_py.formats.timeline.commit_metadata import WriteStat
from hoodie_py.writer.handles.data_file import TaskResult
from hoodie_py.writer.pipeline.tasks import Job, run_jobs


def result(name: str) -> TaskResult:
    return TaskResult(WriteStat(name, name), 0, 0.0)


def test_the_largest_come_first() -> None:
    begun: list[int] = []

    def job(size: int) -> Job:
        def run() -> TaskResult:
            begun.append(size)
            return result(str(size))

        return Job(run, size)

    results = run_jobs([job(size) for size in (2, 9, 5)], workers=1)
    assert begun == [9, 5, 2]
    assert {each.path for each in results} == {"2", "5", "9"}
    assert run_jobs([]) == []


def test_after_a_failure_no_further_job_begins() -> None:
    begun: list[str] = []

    def fail() -> TaskResult:
        begun.append("fail")
        raise StorageError("no space left on device")

    def work() -> TaskResult:
        begun.append("work")
        return result("work")

    with pytest.raises(StorageError, match="no space"):
        run_jobs([Job(fail, 100), *(Job(work, 1) for _ in range(50))], workers=1)
    assert begun[0] == "fail"
    assert len(begun) < 51
