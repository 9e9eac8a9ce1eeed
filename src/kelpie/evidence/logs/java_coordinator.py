"""What group coordinators write: 0.9 to 4.x.

The brackets in front say who writes: "[GroupCoordinator 1]: " up to 3.x, "[GroupCoordinator id=1
topic=__consumer_offsets partition=25] " in 4.x, "[Group Metadata Manager on Broker 1]: " up to 0.11,
"[GroupMetadataManager brokerId=1] " up to 3.x.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from kelpie.evidence.logs.matching import Meaning, Message
from kelpie.evidence.logs.templates import read_templates
from kelpie.observations import EventKind as Kind

_MEMBER_ID = re.compile(r"\bmemberId=([^,)]+)|member\.id ([^\],]+)")
_INSTANCE_ID = re.compile(r"\bgroupInstanceId=(?:Some\()?([^,)]+)|group\.instance\.id (?:Some\()?([^,)\]]+)")
_LIST_MARKS = re.compile(r"^(?:Set\(|List\(|\[)|[\])]$")


def _if_any_offsets(meaning: Meaning, _: Message) -> Sequence[Meaning]:
    """Brokers log every ten minutes that they removed no offsets."""
    return [] if meaning.details.get("offsets", "0") == "0" else [meaning]


def _deleted(meaning: Meaning, _: Message) -> Sequence[Meaning]:
    """One message for several groups."""
    offsets = {"offsets": meaning.details.get("offsets", "")}
    groups = [name.strip() for name in meaning.details.get("groups", "").split(",")]
    return [Meaning(meaning.kind, {"group": name, "reason": "deleted"}, offsets) for name in groups if name]


def _left(meaning: Meaning, _: Message) -> Sequence[Meaning]:
    """3.x prints all it knows about the member: take the number out of it."""
    who = meaning.details.get("who", "")
    fields = dict(meaning.fields)
    for name, regex in (("member", _MEMBER_ID), ("instance_id", _INSTANCE_ID)):
        match = regex.search(who)
        value = next((group for group in match.groups() if group), "") if match is not None else ""
        if value not in ("", "None", "null"):
            fields[name] = value
    if "member" not in fields and who:
        fields["member"] = who
    return [replace(meaning, fields=fields, details={k: v for k, v in meaning.details.items() if k != "who"})]


def _late(meaning: Meaning, _: Message) -> Sequence[Meaning]:
    """Members that did not rejoin within the rebalance timeout: "Set(m-1, m-2)", "[m-1, m-2]"."""
    members = _LIST_MARKS.sub("", meaning.details.get("late", "")).split(", ")
    fields = {**meaning.fields, "reason": "it did not rejoin within the rebalance timeout"}
    return [Meaning(meaning.kind, {**fields, "member": member}) for member in members if member]


def _fenced(meaning: Meaning, _: Message) -> Sequence[Meaning]:
    if "session expired" in str(meaning.fields.get("reason", "")):
        return [replace(meaning, kind=Kind.MEMBER_EXPIRED)]
    return [meaning]


def _coordination(meaning: Meaning, _: Message) -> Sequence[Meaning]:
    """In 4.x other coordinators, as that of share groups, have the same words."""
    return [meaning] if meaning.fields.get("topic") == "__consumer_offsets" else []


PATTERNS = read_templates(
    "java_coordinator", (_coordination, _deleted, _fenced, _if_any_offsets, _late, _left)
)[""]
