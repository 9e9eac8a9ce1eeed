"""Kafka's protocol: declared schemas, the compiler from schema to bytes, framing, record batches."""
