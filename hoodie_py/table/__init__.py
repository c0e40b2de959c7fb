"""A table as a whole: its timeline, partitions, schema, and the files that hold its rows at an instant.

This layer lists files and reads metadata. It opens data files only to learn a schema. ``hoodie_py.reader`` reads the
rows of one file group, and ``hoodie_py.formats`` decodes bytes.
"""
