"""The process and the machine: cores, memory, Arrow's allocator, telemetry. Nothing here knows of tables."""
