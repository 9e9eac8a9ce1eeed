import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kelpie.real.cluster_errors import RealError


@contextmanager
def held(path: Path, *, limit_s: float, purpose: str) -> Iterator[None]:
    """Hold a lock between processes; it ends with its holder, however that ends.

    The file stays: removing it would let two processes lock two files of one name.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + limit_s
    with path.open("ab") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise RealError(
                        f"Another process has been {purpose} for more than {limit_s:.0f} s "
                        f"and holds {path}. Wait for it, or end it."
                    ) from None
                time.sleep(0.05)
        yield
