"""What the actors of a script know, on one side: a client's view of its group."""

from dataclasses import dataclass, field
from typing import Any

from kelpie.errors import ErrorCode
from tests.lab.differential.script import Actor

BOGUS = "nobody-0f8fad5b-d9cb-469f-a165-70867728950e"


@dataclass
class Part:
    """One actor, and what it was told last."""

    number: int
    group: str
    instance: str | None
    member_id: str = ""
    old_id: str = ""
    generation: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    members: list[str] = field(default_factory=list)
    """What the leader was told; empty for everyone else."""
    phase: str = "join"
    """What a proper member does next: join, sync or beat."""
    awaits: int | None = None
    """The step whose answer it awaits."""

    def told(self, op: str, response: Any) -> None:
        code = response.error_code
        if op == "join":
            self._joined(code, response)
        elif op in ("sync", "heartbeat"):
            if code == ErrorCode.NONE:
                self.phase = "beat" if op == "sync" or self.phase == "beat" else self.phase
            elif code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
                self._take_id("")
            else:
                self.phase = "join"

    def _joined(self, code: int, response: Any) -> None:
        if code == ErrorCode.NONE:
            self._take_id(response.member_id)
            self.generation, self.protocol = response.generation_id, response.protocol_name
            self.protocol_type = response.protocol_type
            self.members = [member.member_id for member in response.members]
            self.phase = "sync"
        elif code == ErrorCode.MEMBER_ID_REQUIRED:
            self._take_id(response.member_id)
        elif code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self._take_id("")

    def _take_id(self, member_id: str) -> None:
        if member_id != self.member_id:
            self.old_id = self.member_id or self.old_id
            self.member_id = member_id
        self.phase = "join"


class Cast:
    def __init__(self, actors: tuple[Actor, ...], prefix: str) -> None:
        self.prefix = prefix
        self.parts = [
            Part(number, self.group(actor.group), actor.instance) for number, actor in enumerate(actors)
        ]

    def group(self, reference: int | str) -> str:
        return "" if reference == "empty" else f"{self.prefix}g{reference}"

    def peer(self, part: Part) -> Part:
        """The next one in the same group; itself if it is alone."""
        same = [each for each in self.parts if each.group == part.group]
        return same[(same.index(part) + 1) % len(same)]

    def member_id(self, part: Part, reference: str) -> str:
        match reference:
            case "own":
                return part.member_id
            case "old":
                return part.old_id
            case "peer":
                return self.peer(part).member_id
            case "bogus":
                return BOGUS
        return ""

    def instance(self, part: Part, reference: str) -> str | None:
        match reference:
            case "own":
                return part.instance
            case "peer":
                return self.peer(part).instance
            case "bogus":
                return "no-such-instance"
        return None

    def generation(self, part: Part, reference: str) -> int:
        changed = {"own": 0, "next": 1, "past": -1}
        if reference in changed:
            return part.generation + changed[reference]
        return 0 if reference == "zero" else -1
