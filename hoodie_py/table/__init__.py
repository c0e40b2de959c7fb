"""A table as a whole: its timeline, partitions, schema, and which files hold its rows at an instant.

This layer lists and reads metadata; it never opens data files except to learn a schema. What is in one file group
is the business of ``hoodie_py.reader``; what bytes mean is that of ``hoodie_py.formats``.
"""
