"""Hostile input: every parser fed with junk, every file with every truncation and every flipped bit.

``parsers`` has one module for each parser, with its seeds and the call that must end in an answer or a HoodieError;
``python -m tests.fuzz.run`` fuzzes them with atheris, ``python -m tests.fuzz.sweep`` damages real files in every way,
and the tests here do a part of both and repeat what was once found.
"""
