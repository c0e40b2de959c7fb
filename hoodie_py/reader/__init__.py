"""RFC-101's core: one file group, its base file and log files, merged.

A reader knows one file slice and nothing of tables: ``log_scan`` says which blocks count, ``align`` which rows meet,
``strategies`` who wins, ``buffer`` folds, ``file_group`` emits.
"""
