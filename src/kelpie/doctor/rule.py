"""What a rule is: a code, a name, and a function from a case to a judgement.

Each rule is a file in `rules/`, named after it. Its docstring is its page: the first line "CODE name", then
the paragraphs "What it sees:", "Why it matters:", "How it decides:", "What to do:", "When it is wrong:" and
"Reproduce:". The module ends with `RULE = Rule.of(__name__, judge)`, or with `RULE =
ClusterRule.of(__name__, judge)` for what concerns the cluster and not one group.
"""

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

from kelpie.cluster import ClusterView
from kelpie.doctor.case import Case
from kelpie.doctor.finding import Evidence, Finding, Judgement, Remedy, Severity
from kelpie.model.time import Instant


@dataclass(frozen=True, slots=True)
class _Named:
    code: str
    name: str
    page: str

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
    ) -> Finding:
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
        )


@dataclass(frozen=True, slots=True)
class Rule(_Named):
    """Looks at one group.

    `judge_rest`: what is the same with the cluster where no group is known that it would hit.
    """

    judge: Callable[[Case], Judgement]
    judge_rest: Callable[[ClusterView, Sequence[Case]], Judgement] | None = None

    @classmethod
    def of(
        cls,
        module: str,
        judge: Callable[[Case], Judgement],
        judge_rest: Callable[[ClusterView, Sequence[Case]], Judgement] | None = None,
    ) -> Self:
        return cls(*_page(module), judge, judge_rest)


@dataclass(frozen=True, slots=True)
class ClusterRule(_Named):
    """Looks at the cluster, with all cases at hand to name whom it hits."""

    judge: Callable[[ClusterView, Sequence[Case]], Sequence[Finding] | Judgement]

    @classmethod
    def of(
        cls, module: str, judge: Callable[[ClusterView, Sequence[Case]], Sequence[Finding] | Judgement]
    ) -> Self:
        return cls(*_page(module), judge)


def _page(module: str) -> tuple[str, str, str]:
    page = inspect.cleandoc(sys.modules[module].__doc__ or "")
    code, _, name = page.partition("\n")[0].partition(" ")
    assert code.startswith("KLP"), f"the page of {module} does not begin with its code"
    return code, name, page
