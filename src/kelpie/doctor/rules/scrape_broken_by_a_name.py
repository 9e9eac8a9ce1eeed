"""KLP406 scrape-broken-by-a-name

What it sees: lines in the metrics of a broker with KoP that are not in
Prometheus' text format, because the name of a group has a quote, a backslash or
an end of line in it.

Why it matters: KoP writes names into labels as they are. Prometheus drops the
whole scrape for one such line: all metrics of this broker are missing, those of
Pulsar, too, as long as the group's series exist. They exist until the broker is
restarted, also after the group is gone. Whoever can choose the name of a group
can blind the monitoring of a broker.

How it decides: by the lines themselves. The name of the group is the text between
group=" and the next label; if the name has an end of line in it, the rule joins the
lines.

What it needs: one scrape of the broker's metrics, as the broker sent it (not what
Prometheus has stored: that has dropped the lines). Where KoP's mapping tree is known
and no scrape is, it is undetermined; without either it says nothing. It says
nothing about brokers that were not scraped.

What to do: give the group another name, delete it, and restart the brokers whose
scrapes have such lines. Deny such names by an authorization rule on groups.

When it is wrong: a line may be broken for another reason, such as a file that was
cut off. The rule does not see names whose lines Prometheus can read, with another
meaning: a backslash before n, a quote or a backslash; or a quote followed by a whole
label.

Reproduce: kelpie lab run hostile-group-name
"""

from collections import defaultdict
from collections.abc import Sequence

from kelpie.cluster import ClusterView
from kelpie.doctor import checks
from kelpie.doctor.attribution import SCRAPES, wanted
from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.rule import Presentation, Rule
from kelpie.model.words import counted, first_of, listed
from kelpie.observations import MalformedSeries

_MOST_QUOTES = 4
_NAMES = 5
_SIGNS = {'"': "a quote", "\\": "a backslash", "\n": "an end of line"}


def judge(cluster: ClusterView, cases: Sequence[Case]) -> Sequence[Finding] | Judgement:
    if not cluster.scrapes:
        return undetermined(SCRAPES) if cluster.mapping_history.groups else ABSENT
    rows_by_group: defaultdict[str | None, list[MalformedSeries]] = defaultdict(list)
    for row in cluster.malformed:
        if row.group is None or wanted(cluster, cases, row.group):
            rows_by_group[row.group].append(row)
    by_name = sorted(rows_by_group.items(), key=lambda item: (item[0] is None, item[0] or ""))
    return [_finding(group, rows) for group, rows in by_name] or ABSENT


def _finding(group: str | None, rows: Sequence[MalformedSeries]) -> Finding:
    first = rows[0]
    scrapes = sorted({row.scrape for row in rows})
    line = first.source.rpartition(":")[2]
    lines = (
        f"{counted(len(rows), 'series', 'series')} of {first_of(scrapes, _NAMES)} "
        f"{'is' if len(rows) == 1 else 'are'} not in the text format (first in line {line})"
    )
    signs = [word for sign, word in _SIGNS.items() if group is not None and sign in group]
    named = listed(sorted({row.broker for row in rows if row.broker})) or "the broker"
    return RULE.finding(
        Severity.WARNING,
        group,
        f"Group {group!r} breaks the metrics of {named} by {listed(signs)} in its name: {lines}."
        if signs
        else f"{lines}.",
        why=f"Prometheus drops the whole scrape for one such line, so all metrics of {named} are missing. "
        "The series stay until the broker is restarted.",
        evidence=[Evidence.of(row, row.text) for row in rows[:_MOST_QUOTES]],
        remedies=[
            Remedy("Give the group a name of letters, digits, dots and dashes, and delete this one."),
            Remedy(f"Restart {named} then: only that ends the series."),
        ],
        cause=first.scrape if group is None else "",
        check=checks.metrics("promtool check metrics"),
    )


RULE = Rule.of(
    __name__,
    presentation=Presentation(
        "breaks the metrics of a broker by its name",
        "break the metrics of a broker by their names",
    ),
    judge_cluster=judge,
)
