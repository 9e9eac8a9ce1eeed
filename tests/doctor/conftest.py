"""In all tests of the doctor: a finding begins with its group, its commands are read by their tools, and none
of them changes anything before a person has seen the plan.
"""

import functools
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from kelpie.cli import parser
from kelpie.doctor.finding import Finding
from kelpie.doctor.rule import Rule
from tests.doctor.kafka_tools import METRICS, misused, misused_shell

_finding = Rule.finding
_GROUP_FIRST = ("Group ", "Groups ", "In group ", "Share group ", "Consumers of group ")
"""For a person woken at night: the group and what happens to it, then the cause."""
_AT_ONCE = "it changes the cluster at once, and shows no plan first"


@pytest.fixture(autouse=True)
def _commands_that_parse(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A person pastes them at night. Names that a shell must be told of as $'…' are left to other tests."""
    wrong: list[str] = []

    def judged(self: Rule, *arguments: Any, **options: Any) -> Finding:
        finding = _finding(self, *arguments, **options)
        commands = [remedy.command for remedy in finding.remedies]
        wrong.extend(
            f"{finding.code}: {command}: {problem}"
            for command in filter(None, [*commands, finding.check])
            if (problem := _problem(command))
        )
        if finding.check and not finding.check.startswith(("kafka-", "zookeeper-shell.sh ", METRICS)):
            wrong.append(f"{finding.code}: {finding.check} is no command of Kafka's own tools")
        if finding.group is not None and not finding.summary.startswith(_GROUP_FIRST):
            wrong.append(f"{finding.code}: does not begin with the group: {finding.summary}")
        return finding

    monkeypatch.setattr(Rule, "finding", judged)
    yield
    assert not wrong, "\n".join(dict.fromkeys(wrong))


@functools.cache  # Many findings have the same command, and each parser takes milliseconds to build.
def _problem(command: str) -> str:
    if "$'" in command:
        return ""
    words = shlex.split(command)
    if words[0].startswith("kafka-"):
        return _AT_ONCE if "--execute" in words else misused(words)
    if words[0] == "zookeeper-shell.sh":
        return misused_shell(words)
    if words[0] != "kelpie":
        return ""
    try:
        parsed = parser(words[1]).parse_args(words[1:])
    except SystemExit:
        return "kelpie does not understand it"
    return _AT_ONCE if getattr(parsed, "apply", False) else ""
