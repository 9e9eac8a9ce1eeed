"""What people know about, by cluster, in one small file beside the store of surveys.

The file is JSON, so that it can be read, and copied to another machine (`kelpie ack --json`, `--import`). It
is not part of the store: a store that is unreadable is begun anew, and what people have written must not go
with it. It is replaced as a whole, under a lock, and readable by its owner only.
"""

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kelpie.model.kelpie_error import KelpieError
from kelpie.model.time import Instant, iso_time
from kelpie.observations.acknowledgement import Acknowledgement
from kelpie.store import default_folder

VERSION = 1
SEVERITIES = ("notice", "warning", "critical")
_FILE = "acknowledgements.json"
_KEEP_EXPIRED_MS = 30 * 24 * 3_600_000
"""An expired one is listed for so long."""

ByCluster = dict[str, list[Acknowledgement]]


class UnreadableAcknowledgements(KelpieError):
    """The file cannot be read or written, or is not what this release writes."""


class Acknowledgements:
    def __init__(self, folder: Path | None = None) -> None:
        self.path = (folder or default_folder()) / _FILE

    def all(self) -> ByCluster:
        """By cluster, as given. Raises UnreadableAcknowledgements."""
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise UnreadableAcknowledgements(f"{self.path} cannot be read: {error}") from None
        return parsed(text, str(self.path))

    def of(self, cluster: str) -> list[Acknowledgement]:
        """Those of one cluster. Raises UnreadableAcknowledgements."""
        return self.all().get(cluster, [])

    def add(self, given: Mapping[str, Iterable[Acknowledgement]], now: Instant) -> None:
        """A new one replaces that of the same group and code. Raises UnreadableAcknowledgements."""

        def change(known: ByCluster) -> None:
            for cluster, rows in given.items():
                added = {(row.group, row.code): row for row in rows}
                kept = (row for row in known.get(cluster, ()) if (row.group, row.code) not in added)
                known[cluster] = [*kept, *added.values()]

        self._change(change, now)

    def remove(self, cluster: str, group: str | None, code: str, now: Instant) -> bool:
        """Whether there was one. Raises UnreadableAcknowledgements."""
        found = False

        def change(known: ByCluster) -> None:
            nonlocal found
            rows = known.get(cluster, [])
            known[cluster] = [row for row in rows if (row.group, row.code) != (group, code)]
            found = len(known[cluster]) < len(rows)

        self._change(change, now)
        return found

    def _change(self, change: Callable[[ByCluster], None], now: Instant) -> None:
        try:
            with self._locked():
                known = self.all()
                change(known)
                for cluster, rows in known.items():
                    known[cluster] = [row for row in rows if row.until > now - _KEEP_EXPIRED_MS]
                beside = self.path.with_suffix(".new")
                with os.fdopen(os.open(beside, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as file:
                    file.write(written(known))
                    file.flush()
                    os.fsync(file.fileno())
                beside.replace(self.path)
        except OSError as error:
            raise UnreadableAcknowledgements(f"{self.path} cannot be written: {error.strerror}") from None

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(self.path.with_suffix(".lock"), os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


def written(known: Mapping[str, Iterable[Acknowledgement]]) -> str:
    """As JSON; times in milliseconds since 1970, and once more for people."""
    clusters = {
        cluster: [{**asdict(row), "expires": iso_time(row.until)} for row in rows]
        for cluster, rows in known.items()
    }
    document = {"version": VERSION, "clusters": {name: rows for name, rows in clusters.items() if rows}}
    return json.dumps(document, indent=2) + "\n"


def parsed(text: str, place: str) -> ByCluster:
    """Raises UnreadableAcknowledgements."""
    try:
        document = json.loads(text)
        if document["version"] != VERSION:
            raise UnreadableAcknowledgements(
                f"{place} has format {document['version']}, and this release reads {VERSION}"
            )
        return {str(name): [_row(row) for row in rows] for name, rows in document["clusters"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise UnreadableAcknowledgements(f"{place} is no file of acknowledgements ({error!r})") from None


def _row(row: Mapping[str, Any]) -> Acknowledgement:
    if row["severity"] not in SEVERITIES:
        raise ValueError(f"severity {row['severity']}")
    return Acknowledgement(
        None if row["group"] is None else str(row["group"]),
        str(row["code"]),
        str(row["severity"]),
        int(row["until"]),
        str(row["by"]),
        str(row["why"]),
        int(row["at"]),
    )
