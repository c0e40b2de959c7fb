"""Avro: schemas, data blocks from and to Arrow, container files of the timeline."""
