"""kcat, which is librdkafka as a program."""

import json
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

from tests.lab.clients.contract import Message

TIMEOUT_S = 60.0
# It takes its input in blocks: few lines would wait for more of them.
MANY = 5000
# It knows the end of a partition by a fetch that has waited in vain, half a second unless told otherwise.
QUICK = (
    *("-X", "reconnect.backoff.max.ms=500", "-X", "topic.metadata.refresh.interval.ms=2000"),
    *("-X", "fetch.wait.max.ms=20", "-m", "30"),
)


@dataclass(frozen=True, slots=True)
class Running:
    """A kcat that goes on until it is ended."""

    process: subprocess.Popen[bytes]
    stdout: IO[bytes]
    stderr: IO[bytes]

    def send(self, lines: Sequence[bytes]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"".join(line + b"\n" for line in lines))
        self.process.stdin.flush()

    def read(self) -> list[Message]:
        """What it has written to its standard output so far."""
        self.stdout.seek(0)
        return messages(self.stdout.read())

    def said(self) -> str:
        """What it has told its user so far."""
        self.stderr.seek(0)
        return self.stderr.read().decode()

    def end(self, how: signal.Signals | None = None) -> None:
        """End its input, or send it a signal, and wait for it."""
        assert self.process.stdin is not None
        if how is None:
            self.process.stdin.close()
        else:
            self.process.send_signal(how)
        self.process.wait(TIMEOUT_S)


class Kcat:
    def __init__(self, program: str, bootstrap: str) -> None:
        self._command = [program, "-b", bootstrap, *QUICK]

    def run(self, *arguments: str, stdin: bytes = b"") -> bytes:
        done = subprocess.run(
            [*self._command, *arguments], input=stdin, capture_output=True, timeout=TIMEOUT_S, check=False
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    @contextmanager
    def running(self, *arguments: str) -> Iterator[Running]:
        with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
            process = subprocess.Popen(
                [*self._command, *arguments], stdin=subprocess.PIPE, stdout=stdout, stderr=stderr
            )
            with process:
                try:
                    yield Running(process, stdout, stderr)
                finally:
                    process.kill()

    def produce(self, topic: str, lines: Sequence[bytes], *arguments: str) -> None:
        self.run("-P", "-t", topic, *arguments, stdin=b"".join(line + b"\n" for line in lines))

    def consume(self, topic: str, *arguments: str) -> list[Message]:
        """From the beginning, unless told otherwise, to the end."""
        return messages(self.run("-C", "-e", "-q", "-J", "-t", topic, *arguments))


def messages(output: bytes) -> list[Message]:
    """Lines of kcat -J; one that is not whole yet is left out."""
    found = [json.loads(line) for line in output.split(b"\n")[:-1]]
    return [
        Message(
            record["partition"],
            record["offset"],
            _bytes(record["payload"]),
            _bytes(record["key"]),
            tuple(
                (name, value.encode())
                for name, value in zip(*[iter(record.get("headers", []))] * 2, strict=True)
            ),
            record["ts"],
        )
        for record in found
    ]


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
