"""One broker without input or output: replicas, logs, the metadata image, one handler file per API."""
