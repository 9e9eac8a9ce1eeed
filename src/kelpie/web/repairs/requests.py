"""What people ask for in forms, as repairs of `kelpie.repair`: the same that the commands make.

Forms name no files: whoever may use the pages must not thereby read the server's disks. What the server was
started with (`--evidence`, `--zookeeper`) counts.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kelpie.api import repair_requests as requests
from kelpie.client.nodes import Nodes
from kelpie.client.settings import Settings
from kelpie.model.names import TopicPartition
from kelpie.model.numbers import whole_number
from kelpie.observations import OFFSETS_TOPIC, Observations
from kelpie.repair.applying import Repair
from kelpie.repair.change_records import records
from kelpie.repair.elect import elect
from kelpie.repair.migrate_offsets import Migration
from kelpie.repair.offset_sources import Sources
from kelpie.repair.plan import CannotRepair
from kelpie.repair.reassign import ReassignmentOptions, cancel, reassign
from kelpie.repair.rehome import rehome
from kelpie.repair.reset import last_known, reset
from kelpie.repair.reset_targets import ResetTarget, ShiftBy, ToEarliest, ToLatest, ToTime, parse_time
from kelpie.repair.undertaking import RepairRequest
from kelpie.repair.undo import find
from kelpie.store import Store
from kelpie.web.language import N_

OF_GROUPS = ("rehome", "reset", "migrate-offsets")
OF_CLUSTERS = ("elect", "reassign-offsets-topic")
_MOST_PARTITIONS = 1_000
_WAIT_S = 240.0
"""How long the copying of replicas is watched; it goes on after that."""

Fields = Mapping[str, str]


class BadRequest(Exception):
    """A form that asks for nothing that could be. The text is a message for people."""

    def __init__(self, message: str, value: str = "") -> None:
        super().__init__(message)
        self.message, self.value = message, value


@dataclass(frozen=True, slots=True)
class RepairTarget:
    """A cluster that may be repaired, and what is known of it besides."""

    cluster: str
    """Its name on the pages."""
    settings: Settings
    store: Store | None = None
    evidence: Observations = field(default_factory=Observations)
    zookeeper: str | None = None
    command_config: str | None = None
    """The file of client properties that commands to paste should name."""

    async def earlier(self, nodes: Nodes) -> Observations | None:
        """What earlier surveys saw of this cluster, and not of one that only says it is."""
        if self.store is None:
            return None
        store = Store(self.store.folder)  # Another thread uses the other one.
        return await requests.earlier_surveys(nodes, store)


@dataclass(frozen=True, slots=True)
class AskedRepair:
    repair: str
    """As the command is called."""
    confirmation: str
    """What a person types before it is done."""
    arguments: Mapping[str, object]
    """What was asked for, for the audit log."""
    request: RepairRequest


def asked_in(target: RepairTarget, query: Fields, form: Fields) -> AskedRepair:
    """What a form asks for. `query`: names, which a browser must not change. Raises BadRequest."""
    repair, group = query.get("repair", ""), query.get("group", "")
    if repair in OF_GROUPS:
        if not group:
            raise BadRequest(N_("Name the group."))
        return _OF_GROUP[repair](target, group, form)
    if repair == "elect":
        return _elect(target, form)
    if repair == "reassign-offsets-topic":
        return _reassign(target, form)
    if repair == "undo":
        return _undo(query.get("change", ""))
    raise BadRequest(N_("There is no such repair."))


def _rehome(target: RepairTarget, group: str, form: Fields) -> AskedRepair:
    new_name = form.get("new_name", "") or None
    chosen = {name: form.get(name) == "yes" for name in ("coordinator", "history", "store")}
    sources = Sources(chosen["coordinator"], chosen["history"], chosen["store"])
    evidence = target.evidence if target.evidence.commits else None
    if not any(chosen.values()) and evidence is None:
        raise BadRequest(N_("Choose at least one place where offsets may come from."))

    async def make(nodes: Nodes) -> Repair:
        earlier = await target.earlier(nodes) if sources.store else None
        return await rehome(nodes, group, sources, new_name=new_name, earlier=earlier, evidence=evidence)

    request = RepairRequest(make, f"group {group}")
    return AskedRepair("rehome", group, {"new_name": new_name, **chosen}, request)


def _reset(target: RepairTarget, group: str, form: Fields) -> AskedRepair:
    to, topics = form.get("to", ""), form.get("topics", "").split()
    goal = None if to == "last-known" else _goal(to, form)

    async def make(nodes: Nodes) -> Repair:
        evidence = target.evidence if target.evidence.commits else None
        known = await last_known(nodes, group, earlier=await target.earlier(nodes), evidence=evidence)
        return await reset(nodes, group, known.target, topics, known)

    if goal is None:
        words, request = "to the last known commit", RepairRequest(make, f"group {group}")
    else:
        words, request = goal.words, requests.reset(group, goal, topics)
    return AskedRepair("reset", group, {"to": words, "topics": topics}, request)


def _goal(to: str, form: Fields) -> ResetTarget:
    if to == "earliest":
        return ToEarliest()
    if to == "latest":
        return ToLatest()
    if to == "time":
        try:
            return ToTime(parse_time(form.get("time", "").strip()))
        except (CannotRepair, OverflowError):
            raise BadRequest(N_("Write the time as 2026-11-16T02:18:03; it is in UTC.")) from None
    if to == "shift":
        text = form.get("count", "").strip()
        number = whole_number(text[1:] if text[:1] in ("+", "-") else text)
        if number is None or len(text) > 19:
            raise BadRequest(N_("Write how many records as a whole number; with a minus sign to go back."))
        return ShiftBy(-number if text.startswith("-") else number)
    raise BadRequest(N_("Choose where the group should go on."))


def _migrate(target: RepairTarget, group: str, form: Fields) -> AskedRepair:
    if target.zookeeper is None:
        raise BadRequest(N_("The server was not given a ZooKeeper."))
    migration = Migration(
        target.zookeeper,
        group,
        form.get("new_name", "") or group,
        tuple(form.get("topics", "").split()),
        backwards=form.get("backwards") == "yes",
        into_log=form.get("into_log") == "yes",
    )

    asked = {
        "new_name": migration.name,
        "topics": list(migration.topics),
        "backwards": migration.backwards,
        "into_log": migration.into_log,
    }
    return AskedRepair("migrate-offsets", group, asked, requests.migrate_offsets(migration))


def _elect(target: RepairTarget, form: Fields) -> AskedRepair:
    partitions = [_partition(text) for text in form.get("partitions", "").split()]
    if not 0 < len(partitions) <= _MOST_PARTITIONS:
        raise BadRequest(N_("Name the partitions, as orders-3."))
    is_unclean = form.get("unclean") == "yes"
    evidence = target.evidence if target.evidence.commits else None

    async def make(nodes: Nodes) -> Repair:
        return await elect(nodes, partitions, unclean=is_unclean, known=evidence)

    names = [str(partition) for partition in partitions]
    asked = {"partitions": names, "unclean": is_unclean}
    return AskedRepair("elect", " ".join(names), asked, RepairRequest(make))


def _partition(text: str) -> TopicPartition:
    partition = TopicPartition.parse(text)
    if partition is None:
        raise BadRequest(N_("%(value)s is no partition; write it as orders-3."), text)
    return partition


def _reassign(target: RepairTarget, form: Fields) -> AskedRepair:
    if form.get("cancel") == "yes":
        request = RepairRequest(cancel)
        return AskedRepair("reassign-offsets-topic", OFFSETS_TOPIC, {"cancel": True}, request)
    brokers = tuple(_number(text) for text in form.get("brokers", "").replace(",", " ").split())
    replication = form.get("replication", "").strip()
    throttle = form.get("throttle", "").strip()
    options = ReassignmentOptions(
        _number(replication) if replication else None,
        brokers,
        wait_s=_WAIT_S,
        throttle=_number(throttle) if throttle else 0,
    )

    async def make(nodes: Nodes) -> Repair:
        return await reassign(nodes, options, target.zookeeper, await target.earlier(nodes))

    asked = {"replication": options.replication, "brokers": list(brokers), "throttle": options.throttle}
    return AskedRepair("reassign-offsets-topic", OFFSETS_TOPIC, asked, RepairRequest(make))


def _number(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise BadRequest(N_("%(value)s is no whole number."), text)
    return int(text)


def _undo(change: str) -> AskedRepair:
    try:
        record = find(records(), change)
    except CannotRepair:
        raise BadRequest(N_("There is no record of this change.")) from None
    return AskedRepair("undo", record.subject, {"change": record.id}, requests.undo(record))


_OF_GROUP: Mapping[str, Callable[[RepairTarget, str, Fields], AskedRepair]] = {
    "rehome": _rehome,
    "reset": _reset,
    "migrate-offsets": _migrate,
}
