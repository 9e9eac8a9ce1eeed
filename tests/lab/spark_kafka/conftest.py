"""`kafka`: the lab or real Kafka. `spark` is that of all tests."""

from tests.lab.java.clusters import clusters, kafka

__all__ = ["clusters", "kafka"]
