"""Names that vulture finds no caller for in the product, and who calls them; ``make lint`` reads this file.

Only what others call belongs here. A rule that nobody calls is wired in, or deleted with its tests.
"""
# ruff: noqa: B018, F821, INP001

# Documented for users: docs/writing.md, docs/writing-a-merger.md (RFC-101's interface), scans and hoodie_py.testing
_.bulk_insert
_.insert_overwrite
_.insert_overwrite_table
_.incremental
_.follow
_.to_polars
_.scan_polars
_.to_duckdb
_.to_datafusion
_.to_ibis
_.to_dask
_.to_ray
_.to_daft
_.to_pyarrow_dataset
_.with_columns
_.buffered
_.project
_.env
_.spark_conf
_.skipped_blocks
_.compaction_plan

# The command line: `cli.app` imports commands by name; typer makes choices of enumerations; `insert_overwrite` and
# others are operations by name, too
_.cluster
_.doctor
_.demo
_.read_optimized
_.cow

# Interfaces of others: rich's console, warnings, NumPy's arrays, decimal's context, files of io and pyarrow, data
# sources of PySpark
_.on_broken_pipe
_.title_justify
_.title_style
_.showwarning
_.__class__
_.writeable
_.prec
_.readable
_.seekable
_.writable
_.streamWriter
_.abort
_.streamReader
_.initialOffset
_.latestOffset
_.getDefaultReadLimit
_.prepareForTriggerAvailableNow

# Fields of Hudi's formats that are carried through records as a whole: they are read, and written again, by their names
_.start_clean_time
_.total_files_deleted
_.min_time
_.num_updates
_.total_write_errors
_.total_updated_records_compacted
_.total_log_blocks
_.total_corrupt_log_block
_.total_rollback_blocks
_.min_event_time
_.max_event_time
_.total_log_files_compacted
_.total_log_read_time_ms
_.total_log_size_compacted
_.num_output_file_groups
_.start_restore_time
_.instants_rolled_back
_.saved_by
_.saved_at
_.comments
_.total_log_files
_.runtime_stats
_.preserve_hoodie_metadata
_.missing_partitions
_.is_partition_deleted
_.time_taken_ms
_.earliest_action
_.log_files_from_failed_commit
_.start_rollback_time
_.latest_base_instant

# Members of enumerations that a number or text of a file or an option stands for
_.BLOCK_IDENTIFIER
_.BLOOM

# Readers of one file group, for change feeds and for look-ups by key: the cases of Hudi's merge tests call them
_.read_merges
_.look_up

# Look-ups by key in the metadata table
_.read_file_ids
_.split_secondary_keys

# Limits are read by their names
_.archive_bytes

# Definitions of indexes: a property of theirs
_.is_expression

# Keys and values of the metadata table's statistics, which readers and writers of its partitions call
_.ALL_PARTITIONS_TYPE
_.FILES_TYPE
_.COLUMN_STATS_TYPE
_.BLOOM_FILTER_TYPE
_.PARTITION_STATS_TYPE
_.encode_file_names
_.make_column_keys
_.make_bloom_keys
_.make_partition_keys
_.make_expression_partition_keys
_.make_column_prefixes
_.make_column_partition_prefixes
_.wrap_values
_.make_value_types
_.unwrap_values
_.NO_VALUES
_.V2
# The view of the metadata table, for makers of its partitions' records
_.read_prefixes
_.count_groups
# Look-ups in the metadata table, for indexes and writers
_.count_groups
_.read_prefixes
open_metadata_view
read_trusted_ranges
_.greatest
_.no_rows
_.no_nulls
_.all_null


# For users alone
_.skipped_slices
_.ASYNC_ARCHIVE  # archival is inline either way
_.log_compact

# pyarrow's datasets and file systems: what DataFusion and Arrow's own C++ call
_.get_fragments
_.get_type_name
_.normalize_path
_.create_dir
_.delete_dir
_.delete_dir_contents
_.delete_file
_.delete_root_dir_contents
_.get_file_info
_.get_file_info_selector
_.open_append_stream
_.open_input_file
_.open_input_stream
_.open_output_stream

# Ray's and Daft's sources
_.get_name
_.estimate_inmemory_data_size
_.get_read_tasks
_.get_tasks
