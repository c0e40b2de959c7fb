"""Names in the partition ``files`` of the metadata table (Hudi ``MetadataPartitionType``, ``HoodieTableMetadata``)."""

FILES_PARTITION = "files"
ALL_PARTITIONS = "__all_partitions__"
NO_PARTITION = "."
