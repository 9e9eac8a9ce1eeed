"""Traffic by group."""
