"""What Kafka's tools print when they get no answer, and their remarks about groups.

0.9 to 1.x   Error while executing consumer group command The group coordinator is not available.
2.0          Error: Executing consumer group command failed due to …Exception: …
4.1          the same of share and streams groups
4.x          the same with a TimeoutException: Call(callName=…(api=FIND_COORDINATOR), … tries=35607 …)
             timed out at 1794776373922 after 35607 attempt(s)

In the last form the tool has asked thousands of times within its time limit. Such fast answers are error 15:
FindCoordinator has no other retriable error. After few tries, no broker has answered at all.
"""

import re

from kelpie.errors import ErrorCode
from kelpie.evidence.describes.output import Context
from kelpie.evidence.named_errors import error_in
from kelpie.observations import CoordinatorAnswer, GroupRemoved, GroupState, Unasked
from kelpie.observations.groups import UNTOLD

_FAILED = re.compile(
    r"^\s*(?:Error: )?(?:Error while e|E)xecuting (?:consumer|share|streams) group command"
    r"(?: failed due to)? (?P<why>.+)$"
)
_CALL = re.compile(r"\(api=(?P<api>[A-Z_]+)\)")
_TRIES = re.compile(r"tries=(\d{1,12})")
_TIMED_OUT_AT = re.compile(r"timed out at (\d{13})\b")
_STATE = re.compile(
    r"^\s*(?:Warning: |Error: )?(?P<kind>Consumer|Share|Streams) group [`'](?P<group>.+?)[`'] (?P<what>.+)$",
    re.DOTALL,
)
_NOT_FOUND = re.compile(r"\bGroup (?P<group>\S+) not found\.")
_DELETED = re.compile(r"^Deletion of requested (?:consumer )?groups \((?P<groups>.+)\) was successful\.")
_QUOTED = re.compile(r"['\"](.+?)['\"]")
_ASKED = {
    "FIND_COORDINATOR": "FindCoordinator",
    "DESCRIBE_GROUPS": "DescribeGroups",
    "CONSUMER_GROUP_DESCRIBE": "ConsumerGroupDescribe",
    "OFFSET_FETCH": "OffsetFetch",
    "LIST_GROUPS": "ListGroups",
}
_MANY_TRIES = 10
_STATES = {
    "has no active members": "Empty",
    "is rebalancing": "PreparingRebalance",
    "is in state Dead": "Dead",
}


def read_failure(line: str, context: Context, number: int) -> bool:
    """Whether the line is such a message; what it means goes to the context."""
    failed = _FAILED.match(line)
    if failed is not None:
        _failed(line, failed["why"], context, number)
        return True
    said = _STATE.match(line)
    if said is not None:
        context.note_kind(said["group"], said["kind"].lower(), number)
        _said(said["group"], said["what"], line, context, number)
        return True
    deleted = _DELETED.match(line)
    if deleted is not None:
        for group in _QUOTED.findall(deleted["groups"]):
            context.observations.removals.append(GroupRemoved(group, source=context.source(number)))
            context.know(group, number)
        return True
    return False


def _failed(line: str, why: str, context: Context, number: int) -> None:
    source = context.source(number)
    context.output.times += [int(moment) for moment in _TIMED_OUT_AT.findall(line)]
    call = _CALL.search(why)
    tries = _TRIES.search(why, call.end()) if call is not None else None
    asked = (
        _ASKED.get(call["api"], call["api"]) if call is not None and tries is not None else "FindCoordinator"
    )
    error = error_in(why) or ErrorCode.UNKNOWN_SERVER_ERROR
    if tries is not None and asked == "FindCoordinator" and int(tries[1]) >= _MANY_TRIES:
        error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    elif error is ErrorCode.GROUP_ID_NOT_FOUND:
        asked = "DescribeGroups"
    missing = _NOT_FOUND.search(why)
    group = missing["group"] if missing is not None else context.group_or_name
    if group is None:
        reason = f"The tool failed, and nothing says for which group: {line.strip()}"
        context.observations.unasked.append(Unasked("group", "", reason, source=source))
        return
    answer = CoordinatorAnswer(group, asked, error, message=line.strip(), source=source)
    context.observations.answers.append(answer)
    context.know(group, number)


def _said(group: str, what: str, line: str, context: Context, number: int) -> None:
    """A remark, mostly on stderr: "Consumer group 'billing' has no active members."."""
    context.group = group
    context.know(group, number)
    if what.startswith("does not exist"):
        source, error = context.source(number), ErrorCode.GROUP_ID_NOT_FOUND
        answer = CoordinatorAnswer(group, "DescribeGroups", error, message=line.strip(), source=source)
        context.observations.answers.append(answer)
        return
    for words, state in _STATES.items():
        if what.startswith(words):
            known = context.states.get(group) or GroupState(group, "", source=context.source(number))
            is_known = known.state not in ("", UNTOLD)
            context.states[group] = known._replace(state=known.state if is_known else state)
