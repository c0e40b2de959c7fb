"""The text of a worker's traceback begins with the sentence of the error."""

from __future__ import annotations

import traceback

import pytest

from hoodie_py.errors import CorruptFileError
from hoodie_py.spark.sentence import put_sentence_first


@put_sentence_first()
def read() -> None:
    try:
        raise OSError("torn")
    except OSError as error:
        raise CorruptFileError("It is broken.", hint="Mend it.", path="a") from error


def test_the_sentence_comes_first_then_the_frames_then_the_cause() -> None:
    for _ in range(2):
        with pytest.raises(CorruptFileError) as caught:
            read()
        text = "".join(traceback.format_exception(caught.value))
        assert text.startswith("hoodie_py.errors.CorruptFileError: It is broken. [path=a] Mend it.\n")
        caught.value.__cause__ = None  # as PySpark does where it shortens tracebacks
        assert "".join(traceback.format_exception(caught.value)) == text
        assert text.index("Traceback (most recent call last)") < text.index("It was caused by OSError: torn")


def test_an_error_that_passes_two_methods_is_told_once() -> None:
    with pytest.raises(CorruptFileError) as caught, put_sentence_first():
        read()
    text = "".join(traceback.format_exception(caught.value))
    assert text.startswith("hoodie_py.errors.CorruptFileError: It is broken.")
    assert text.count("hoodie_py.errors.CorruptFileError: It is broken.") == 2
    assert text.count("It was caused by") == 1


def test_other_errors_and_values_pass() -> None:
    with pytest.raises(ZeroDivisionError) as caught, put_sentence_first():
        raise ZeroDivisionError
    assert caught.value.__cause__ is None
    with put_sentence_first():
        pass
