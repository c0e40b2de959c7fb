"""Texts of values as Java prints them; the floats and bytes of keys are those of delete blocks that Java wrote.

Floats print as Java 17 prints them; the texts here are Java's.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.arrow.java_text import format_bytes, format_floats, format_java_float, make_float_formatter

SINGLE, DOUBLE = pa.float32(), pa.float64()
ARRAYS = st.lists(st.none() | st.floats() | st.floats(-1e8, 1e8), max_size=8)


@pytest.mark.parametrize(
    ("value", "type_", "text"),
    [
        (-0.0, SINGLE, "-0.0"),
        (123456.789, SINGLE, "123456.79"),
        (0.1, SINGLE, "0.1"),
        (1e-5, SINGLE, "1.0E-5"),
        (3e10, SINGLE, "3.0E10"),
        (1.4e-45, SINGLE, "1.4E-45"),
        (1234567.891, DOUBLE, "1234567.891"),
        (5e-324, DOUBLE, "4.9E-324"),
        (1e7, DOUBLE, "1.0E7"),
        (9999999.0, DOUBLE, "9999999.0"),
        (0.001, DOUBLE, "0.001"),
        (0.000999, DOUBLE, "9.99E-4"),
        (2e23, DOUBLE, "2.0E23"),
        (float("nan"), DOUBLE, "NaN"),
        (float("-inf"), DOUBLE, "-Infinity"),
        (None, DOUBLE, None),
    ],
)
def test_floats(value: float | None, type_: pa.DataType, text: str | None) -> None:
    assert format_floats(pa.array([value], type_)).to_pylist() == [text]


@given(ARRAYS, st.sampled_from([SINGLE, DOUBLE]))
def test_arrays_have_the_texts_of_their_values(values: list[float | None], type_: pa.DataType) -> None:
    with np.errstate(over="ignore"):
        array = pa.array(
            np.array([np.nan if each is None else each for each in values]).astype(type_.to_pandas_dtype())
        )
    convert = make_float_formatter(type_)
    texts = format_floats(array).to_pylist()
    assert texts == [convert(each) for each in array.to_pylist()]
    back = np.array([float(each.replace("Infinity", "inf")) for each in texts]).astype(type_.to_pandas_dtype())
    assert np.array_equal(back, array.to_numpy(), equal_nan=True)


@given(st.lists(st.none() | st.binary(max_size=4), max_size=6), st.integers(0, 6))
def test_bytes(values: list[Any], start: int) -> None:
    for type_ in (pa.binary(), pa.large_binary()):
        found = format_bytes(pa.array(values, type_).slice(start)).to_pylist()
        assert found == [None if each is None else each.hex() for each in values[start:]]


def test_bytes_of_one_length() -> None:
    assert format_bytes(pa.array([b"\x00\xff", None], pa.binary(2))).to_pylist() == ["00ff", None]


SINGLES = {
    0x00000000: "0.0",
    0x00000001: "1.4E-45",
    0x0A7CAEAE: "1.2166212E-32",
    0x12D28443: "1.3285468E-27",
    0x3D27723F: "0.040880438",
    0x3DCFCC21: "0.101463564",
    0x3F800000: "1.0",
    0x41F80000: "31.0",
    0x42C86DBB: "100.21432",
    0x44C55148: "1578.54",
    0x45465D9A: "3173.85",
    0x45933C00: "4711.5",
    0x45B776F6: "5870.87",
    0x45E16829: "7213.02",
    0x49BCDD22: "1547172.2",
    0x49CAADA8: "1660341.0",
    0x527AABF6: "2.69156712E11",
    0x64078678: "1.0E22",
    0x674653CB: "9.365743E23",
    0x69C5A997: "2.9869906E25",
    0x6A50DFA9: "6.3128193E25",
    0x6DCF1C5F: "8.012212E27",
    0x798E1CFA: "9.223673E34",
    0x7F800000: "Infinity",
    0x7FC00000: "NaN",
    0x80000000: "-0.0",
    0xA629F809: "-5.8969804E-16",
    0xAFF67B22: "-4.483463E-10",
    0xBB0359BF: "-0.0020042507",
    0xC0400000: "-3.0",
    0xC27A5912: "-62.586983",
    0xCDFE6D40: "-5.33571584E8",
    0xDB4CFF72: "-5.770176E16",
    0xDD4E5E94: "-9.2940536E17",
    0xEBEE9A66: "-5.7690694E26",
    0xFF800000: "-Infinity",
}
DOUBLES = {
    0x0000000000000000: "0.0",
    0x0000000000000001: "4.9E-324",
    0x1FC28D4C378E92D2: "1.0809900100721528E-155",
    0x253AD43CFA786582: "2.419063431304622E-129",
    0x26718EE658D7D805: "1.6600525471655776E-123",
    0x385B7810BB023171: "3.2289660537816085E-37",
    0x3FF0000000000000: "1.0",
    0x4026000000000000: "11.0",
    0x40D4ECCD60418937: "21427.209",
    0x40E581AA0C49BA5E: "44045.314",
    0x40E87B94B4395810: "50140.647",
    0x40F2FEB84189374C: "77803.516",
    0x40F411C389374BC7: "82204.221",
    0x40FBF43000000000: "114499.0",
    0x5EA7089D0982659E: "9.203872207743095E147",
    0x6FFCF2980E8D2B87: "2.808857718819017E231",
    0x7E031CFD3999F7B0: "1.0E299",
    0x83499A41E1F3CAA9: "-8.017477546545576E-293",
    0x8DA1913E448B80AE: "-5.145646170396923E-243",
    0xB052F097D1C3398F: "-6.542697935488949E-76",
    0xC27FC0CE026EE000: "-2.18205940299E12",
    0xC2CC8184C2FEDE00: "-6.2685207461308E13",
    0xC30F2A7774091CC8: "-1.096552101782425E15",
    0xC4BE79B096DB8E54: "-1.4391577511820974E23",
    0xCDB359AB1A0D66E6: "-2.0378209680418116E66",
    0xCE5E2F72FE1A57CD: "-3.255181531721783E69",
    0xEB2EFC7E9313E362: "-1.9896506666737545E208",
    0xFD55D026355E150F: "-5.572535085623804E295",
}


@pytest.mark.parametrize(("bits", "text"), SINGLES.items())
def test_single_floats(bits: int, text: str) -> None:
    assert format_java_float(struct.unpack(">f", bits.to_bytes(4, "big"))[0], single=True) == text


@pytest.mark.parametrize(("bits", "text"), DOUBLES.items())
def test_double_floats(bits: int, text: str) -> None:
    assert format_java_float(struct.unpack(">d", bits.to_bytes(8, "big"))[0], single=False) == text


@given(st.floats(width=32, allow_nan=False))
def test_the_text_of_a_single_float_reads_back(value: float) -> None:
    text = format_java_float(value, single=True)
    assert struct.pack(">f", float(text.replace("Infinity", "inf"))) == struct.pack(">f", value)


@given(st.floats(allow_nan=False))
def test_the_text_of_a_double_float_reads_back(value: float) -> None:
    assert float(format_java_float(value, single=False).replace("Infinity", "inf")) == value
