"""Kelpie herds Kafka consumer groups: finds those that do not consume, and why."""

__version__ = "0.1.0"
