"""What a consumer of Kafka 0.8 does, as its own log tells it: settings first, then each step.

evidence/logs/ reads it as it reads the log of the real one.
"""

from pathlib import Path

from kelpie.model.time import Instant
from kelpie.zookeeper.config import ZookeeperConsumerConfig
from kelpie.zookeeper.log_lines import LogLine, written, written_line
from kelpie.zookeeper.steps import RecordedStep, SessionBegan

_VERIFIABLE = "kafka.utils.VerifiableProperties"


class ZookeeperConsumerLog:
    """A file in the folder of a stage's logs."""

    def __init__(self, path: Path, hosts: str, config: ZookeeperConsumerConfig) -> None:
        self._path = path
        self._hosts, self._config = hosts, config

    def begin(self, consumer_id: str, now: Instant) -> None:
        config = self._config
        settings = {
            "auto.commit.interval.ms": config.auto_commit_interval_ms,
            "group.id": config.group_id,
            "rebalance.backoff.ms": config.rebalance_backoff_ms,
            "rebalance.max.retries": config.rebalance_max_retries,
            "zookeeper.connect": self._hosts,
            "zookeeper.session.timeout.ms": config.session_timeout_ms,
        }
        lines = [LogLine("INFO", _VERIFIABLE, "Verifying properties")]
        lines += [
            LogLine("INFO", _VERIFIABLE, f"Property {name} is overridden to {value}")
            for name, value in settings.items()
        ]
        connecting = f"[{consumer_id}], Connecting to zookeeper instance at {self._hosts}"
        lines.append(LogLine("INFO", "kafka.consumer.ZookeeperConsumerConnector", connecting))
        self._write("".join(written_line(line, now) for line in lines))

    def step(self, recorded: RecordedStep, consumer_id: str) -> None:
        text = written(recorded, consumer_id)
        if isinstance(recorded.step, SessionBegan):
            begun = (
                f"Session establishment complete on server {self._hosts.partition('/')[0]}, sessionid = "
                f"{recorded.step.session:#x}, negotiated timeout = {self._config.session_timeout_ms}"
            )
            text = written_line(LogLine("INFO", "org.apache.zookeeper.ClientCnxn", begun), recorded.at) + text
        self._write(text)

    def _write(self, text: str) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(text)
