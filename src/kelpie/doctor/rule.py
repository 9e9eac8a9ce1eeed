"""What a rule is: a code, a name, a function from a case to a judgement, and how reports speak of it.

Each rule is a file in `rules/`, named after it. Its docstring is its page: the first line "CODE name", then
the paragraphs "What it sees:", "Why it matters:", "How it decides:", "What it needs:" (rights, releases,
logs, two surveys, and what the rule says without them), "What to do:", "When it is wrong:" and "Reproduce:".
The module ends with `RULE = Rule.of(__name__, judge)`, or with `RULE = Rule.of(__name__,
judge_cluster=judge)` for what concerns the cluster and not one group.

A cluster may have 10,000 groups, nearly all of them healthy. So a rule names the signs (`signs.Sign`) for
which it is asked; `otherwise` is its judgement of all other groups.
"""

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kelpie.cluster import ClusterView
from kelpie.doctor.case import Case
from kelpie.doctor.finding import (
    ABSENT,
    Absent,
    Evidence,
    Finding,
    Judgement,
    Remedy,
    Severity,
    Undetermined,
)
from kelpie.doctor.signs import ALL
from kelpie.model.time import Instant

JudgeGroup = Callable[[Case], Judgement]
JudgeCluster = Callable[[ClusterView, Sequence[Case]], Sequence[Finding] | Judgement]


@dataclass(frozen=True, slots=True)
class Presentation:
    """How reports speak of a rule's findings."""

    of_one: str = ""
    """Said of one group: "has no coordinator". Empty: the name of the rule is said."""
    of_many: str = ""
    """Said of several groups: "have no coordinator"."""
    when_over: str = ""
    """What groups had until it ended: "no coordinator". Empty: the name of the rule is said."""
    names_dead_brokers: bool = False
    """The verdict adds which brokers are dead: they are the cause."""
    is_essential: bool = False
    """A group for which this rule is undetermined counts as not judged."""
    silences: bool = False
    """Brokers cannot answer for groups with this finding, so all other rules lack data about them."""
    stops_group: bool = False
    """While it lasts, the group does not commit as usual: such a time says nothing about its rhythm."""
    is_risk_alone: bool = False
    """Without a group that is hit, it is but a risk, and comes after what is wrong now."""


_PLAIN = Presentation()


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule judges each group, or the cluster; one that judges both says of the cluster only what hits no
    known group.
    """

    code: str
    name: str
    page: str
    judge: JudgeGroup | None
    judge_cluster: JudgeCluster | None
    """The cases tell which groups there are, and the members of each, as far as they are known."""
    presentation: Presentation
    of_zookeeper: bool = False
    """It judges groups that ZooKeeper keeps; the others judge those that Kafka keeps."""
    of_share_groups: bool = False
    """It judges share groups, too. They have no generations and no committed offsets."""
    asked_for: int = ALL
    """Signs of groups. Of a group without any of them, the judgement is `otherwise`."""
    otherwise: Absent | Undetermined = ABSENT
    absent_for: int = 0
    """Signs of groups of which it is absent, if it is not asked, whatever `otherwise` says."""

    def judges(self, *, in_zookeeper: bool, is_share: bool) -> bool:
        """Whether such groups are its business. Coordinators have groups of every kind (KLP1xx)."""
        of_all_kinds = self.of_share_groups or self.code.startswith("KLP1")
        return self.of_zookeeper is in_zookeeper and (of_all_kinds or not is_share)

    @classmethod
    def of(
        cls,
        module: str,
        judge: JudgeGroup | None = None,
        presentation: Presentation = _PLAIN,
        *,
        judge_cluster: JudgeCluster | None = None,
        of_zookeeper: bool = False,
        of_share_groups: bool = False,
        asked_for: int = ALL,
        otherwise: Absent | Undetermined = ABSENT,
        absent_for: int = 0,
    ) -> "Rule":
        """The rule that this module defines; code and name are the first line of its docstring."""
        page = inspect.cleandoc(sys.modules[module].__doc__ or "")
        code, _, name = page.partition("\n")[0].partition(" ")
        assert code.startswith("KLP"), f"the page of {module} does not begin with its code"
        return cls(
            code,
            name,
            page,
            judge,
            judge_cluster,
            presentation,
            of_zookeeper,
            of_share_groups,
            asked_for,
            otherwise,
            absent_for,
        )

    def unasked(self, signs: int) -> Absent | Undetermined:
        """Its judgement of a group with these signs, none of which it is asked for."""
        return ABSENT if signs & self.absent_for else self.otherwise

    def finding(
        self,
        severity: Severity,
        group: str | None,
        summary: str,
        *,
        why: str,
        evidence: Sequence[Evidence],
        remedies: Sequence[Remedy] = (),
        cause: str = "",
        brokers: Sequence[int] = (),
        partitions: Sequence[object] = (),
        members: Sequence[str] = (),
        since: Instant | None = None,
        until: Instant | None = None,
        check: str = "",
    ) -> Finding:
        """`check`: the command of Kafka's own tools that shows the same (`kelpie.doctor.checks`)."""
        return Finding(
            self.code,
            self.name,
            severity,
            group,
            summary,
            why,
            tuple(evidence),
            tuple(remedies),
            cause or (group or ""),
            tuple(brokers),
            tuple(map(str, partitions)),
            tuple(members),
            since,
            until,
            check,
        )
