"""Kelpie herds Kafka consumer groups: finds those that do not consume, and why."""
