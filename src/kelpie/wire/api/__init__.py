"""One file per API: its schema, headed by what changed in which version."""
