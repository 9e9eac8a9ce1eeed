"""Faults that the doctor finds after minutes only, on real Kafka: groups that have them, and near misses."""
