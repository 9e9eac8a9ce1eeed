"""Plans that were shown, so that --apply does what a person has seen, and nothing else.

What a plan would change, and what is there now as far as the plan rests on it, are its `basis`: lines that a
person can compare, and whose hash is the id of the plan. A plan that is only printed is kept for an hour,
under the command that made it. When the same command comes with --apply, it plans anew, and applies the plan
only if the basis is the same.

One repair of a subject (a group, or the offsets topic) of a cluster runs at a time: `exclusive`. This holds
for processes of one user on one machine. Others are noticed only when they have changed something: each
commit first looks whether the offsets are still those of the plan. Kafka has no way to make a commit depend
on that, so what changes in the instant between is overwritten.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from kelpie.model.time import Instant
from kelpie.model.words import moment
from kelpie.repair.plan import CannotRepair, Plan
from kelpie.repair.undo_files import write_whole
from kelpie.store import default_folder

KEPT_MS = 3_600_000
_MOST_DIFFERENCES = 5


@dataclass(frozen=True, slots=True)
class ShownPlan:
    id: str
    at: Instant
    basis: tuple[str, ...]


class ShownPlans:
    """Of one command with its arguments, in one cluster."""

    def __init__(self, cluster: str, command: str, arguments: dict[str, object]) -> None:
        key = json.dumps([cluster, command, arguments], sort_keys=True, default=str)
        self._folder = default_folder() / "plans"
        self._file = self._folder / f"{_digest(key)}.json"

    def keep(self, plan: Plan, at: Instant) -> None:
        """A plan that cannot be kept is only not compared with."""
        document = {"id": plan.id, "at": at, "basis": plan.basis}
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_whole(self._file, json.dumps(document, indent=1) + "\n")
            for file in self._folder.glob("*.json"):
                if (old := _read(file)) is None or at - old.at > KEPT_MS:
                    file.unlink(missing_ok=True)

    def last(self, now: Instant) -> ShownPlan | None:
        """The plan that was shown last, unless that is too long ago."""
        shown = _read(self._file)
        return shown if shown is not None and 0 <= now - shown.at <= KEPT_MS else None

    def forget(self) -> None:
        with suppress(OSError):
            self._file.unlink(missing_ok=True)


def why_not(plan: Plan, shown: ShownPlan | None, wanted: str | None) -> str | None:
    """Why this plan must not be applied: it is not the one that was `shown`, or is `wanted` by its id."""
    if wanted is not None and not (len(wanted) >= 4 and plan.id.startswith(wanted)):
        return f"This is plan {plan.id}, and not {wanted}. " + _differences(plan, shown, wanted)
    if wanted is None and shown is not None and shown.id != plan.id:
        return f"This is not the plan that was shown {moment(shown.at)}. " + _differences(plan, shown)
    return None


def _differences(plan: Plan, shown: ShownPlan | None, wanted: str | None = None) -> str:
    if shown is None or (wanted is not None and not shown.id.startswith(wanted)):
        return "What that one would have changed is not kept here."
    gone = [f"no longer: {line}" for line in shown.basis if line not in plan.basis]
    new = [f"now: {line}" for line in plan.basis if line not in shown.basis]
    lines = [*gone, *new]
    more = f"; and {len(lines) - _MOST_DIFFERENCES} more" if len(lines) > _MOST_DIFFERENCES else ""
    return f"What differs: {'; '.join(lines[:_MOST_DIFFERENCES])}{more}."


@contextmanager
def exclusive(cluster: str, subject: str) -> Iterator[None]:
    """Only one at a time. Raises CannotRepair while another process holds it."""
    folder = default_folder() / "locks"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = folder / f"{_digest(json.dumps([cluster, subject]))}.lock"
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        raise CannotRepair(
            f"{error.filename} cannot be written: {error.strerror}. KELPIE_STATE chooses another folder."
        ) from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 100).decode("ascii", "replace").strip() or "unknown"
            raise CannotRepair(
                f"Another kelpie (process {holder}) is repairing {subject} in this cluster. Wait until it is "
                "done, and look at the plan again."
            ) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        yield
    finally:
        os.close(descriptor)  # The file stays: removing it would let two processes lock two files.


def _read(file: Path) -> ShownPlan | None:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        basis: Sequence[object] = document["basis"]
        return ShownPlan(str(document["id"]), int(document["at"]), tuple(map(str, basis)))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]
