"""The process and the machine: cores, memory, Arrow's allocator, threads that fold logs.

Nothing here knows of tables.
"""
