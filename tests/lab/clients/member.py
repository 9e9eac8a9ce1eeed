"""A member of a group in its own process, for a test to kill: python -m tests.lab.clients.member CLIENT ...

A consumer that is merely closed, or no longer polled, says goodbye or goes on sending heartbeats. Only a
process that is gone leaves its session to run out.
"""

import importlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lab.clients.contract import ConsumerOptions

ROOT = Path(__file__).parents[3]


@contextmanager
def running(
    driver: str, bootstrap: str, group: str, topic: str, session_ms: int
) -> Iterator[subprocess.Popen[bytes]]:
    """Such a process; it is killed at the end, if the test has not done it."""
    arguments = [driver, bootstrap, group, topic, str(session_ms)]
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.lab.clients.member", *arguments], cwd=ROOT, stdout=said, stderr=said
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()
            said.seek(0)
            sys.stderr.write(said.read().decode(errors="replace"))  # Shown only when the test fails.


def main(driver: str, bootstrap: str, group: str, topic: str, session_ms: str) -> None:
    client = importlib.import_module(driver).CLIENT
    options = ConsumerOptions(group=group, session_ms=int(session_ms), client_id="doomed")
    with client.consumer(bootstrap, options) as consumer:
        consumer.subscribe(topic)
        while True:
            consumer.poll()


if __name__ == "__main__":
    main(*sys.argv[1:])
