"""RFC-101's core: one file group, its base file and log files, merged.

A reader knows one file slice and nothing of tables: ``log.scan`` says which blocks count, ``base.match`` which rows
meet, ``merge.strategies`` who wins, ``buffer`` folds, ``file_group`` emits.
"""
