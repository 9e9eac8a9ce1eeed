"""Outputs of tools, configurations and surveys into `cluster_snapshot`."""
