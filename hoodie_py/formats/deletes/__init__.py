"""Delete blocks of log files: record keys and ordering values, in Avro and in Kryo."""
