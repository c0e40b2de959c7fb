"""One file group, read and merged: the engine's core (RFC-101).

A reader knows one file slice and nothing of tables. ``log.scan`` decides which blocks count, ``base.match`` which rows
meet, ``merge.strategies`` which version wins; ``buffer`` folds the log and ``file_group`` returns the rows.
"""
