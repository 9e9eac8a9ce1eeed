"""What group coordinators write: 0.9 to 4.x.

The brackets in front say who writes: "[GroupCoordinator 1]: " up to 3.x, "[GroupCoordinator id=1
topic=__consumer_offsets partition=25] " in 4.x, "[Group Metadata Manager on Broker 1]: " up to 0.11,
"[GroupMetadataManager brokerId=1] " up to 3.x.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from kelpie.evidence.logs.matching import Found, Message
from kelpie.evidence.logs.templates import read_templates
from kelpie.observations import EventKind as Kind

_MEMBER_ID = re.compile(r"\bmemberId=([^,)]+)|member\.id ([^\],]+)")
_INSTANCE_ID = re.compile(r"\bgroupInstanceId=(?:Some\()?([^,)]+)|group\.instance\.id (?:Some\()?([^,)\]]+)")
_LIST_MARKS = re.compile(r"^(?:Set\(|List\(|\[)|[\])]$")


def _if_any_offsets(found: Found, _: Message) -> Sequence[Found]:
    """Brokers log every ten minutes that they removed no offsets."""
    return [] if found.details.get("offsets", "0") == "0" else [found]


def _deleted(found: Found, _: Message) -> Sequence[Found]:
    """One message for several groups."""
    offsets = {"offsets": found.details.get("offsets", "")}
    groups = [name.strip() for name in found.details.get("groups", "").split(",")]
    return [Found(found.kind, {"group": name, "reason": "deleted"}, offsets) for name in groups if name]


def _left(found: Found, _: Message) -> Sequence[Found]:
    """3.x prints all it knows about the member: take the number out of it."""
    who = found.details.get("who", "")
    fields = dict(found.fields)
    for name, regex in (("member", _MEMBER_ID), ("instance_id", _INSTANCE_ID)):
        match = regex.search(who)
        value = next((group for group in match.groups() if group), "") if match is not None else ""
        if value not in ("", "None", "null"):
            fields[name] = value
    if "member" not in fields and who:
        fields["member"] = who
    return [replace(found, fields=fields, details={k: v for k, v in found.details.items() if k != "who"})]


def _late(found: Found, _: Message) -> Sequence[Found]:
    """Members that did not rejoin within the rebalance timeout: "Set(m-1, m-2)", "[m-1, m-2]"."""
    members = _LIST_MARKS.sub("", found.details.get("late", "")).split(", ")
    fields = {**found.fields, "reason": "it did not rejoin within the rebalance timeout"}
    return [Found(found.kind, {**fields, "member": member}) for member in members if member]


def _fenced(found: Found, _: Message) -> Sequence[Found]:
    if "session expired" in str(found.fields.get("reason", "")):
        return [replace(found, kind=Kind.MEMBER_EXPIRED)]
    return [found]


def _coordination(found: Found, _: Message) -> Sequence[Found]:
    """In 4.x other coordinators, as that of share groups, have the same words."""
    return [found] if found.fields.get("topic") == "__consumer_offsets" else []


PATTERNS = read_templates(
    "java_coordinator", (_coordination, _deleted, _fenced, _if_any_offsets, _late, _left)
)[""]
