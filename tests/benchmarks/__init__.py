"""Benchmarks: off in the test suite, run by `make bench`."""
