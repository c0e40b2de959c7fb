"""Log compaction: many small log files of a file group become one."""
