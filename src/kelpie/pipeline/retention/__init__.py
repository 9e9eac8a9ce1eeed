"""Retention: rows that are older than a layer keeps them go, and what is kept stays right."""
