"""Avro: schemas, data blocks to Arrow and back, container files of the timeline."""
