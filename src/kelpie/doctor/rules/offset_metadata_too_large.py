"""KLP320 offset-metadata-too-large

What it sees: commits that a coordinator refuses because of their size:
OFFSET_METADATA_TOO_LARGE (12), or INVALID_COMMIT_OFFSET_SIZE (28).

Why it matters: the group reads and works, and nothing of it is committed. After the next
rebalance or restart all of it is done again, from the last offset that was accepted.

How it decides: a consumer's log shows a commit that failed with one of these errors.
Applications may add a text to an offset; brokers take up to offset.metadata.max.bytes
(4,096 by default). Libraries that process records in parallel keep there which records
are done, and that text grows while one record is not.

What it needs: the logs of the group's consumers (librdkafka's with debug=cgrp). Refused
commits leave no trace in the cluster, so without such logs it is undetermined; that
nothing is committed is KLP310 or KLP312, which this rule explains.

What to do: make the text shorter; or raise offset.metadata.max.bytes on all brokers. For
28, commit fewer partitions at a time, or raise the segment size of __consumer_offsets.

When it is wrong: a log from before the change.

Reproduce: kelpie lab run offset-metadata-too-large
"""

from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.membership import CLIENT_LOGS, LogLines, describing
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.signs import Sign
from kelpie.errors import ErrorCode
from kelpie.model.words import listed
from kelpie.observations import EventKind

_ERRORS = (ErrorCode.OFFSET_METADATA_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE)
_LIMIT = "offset.metadata.max.bytes"


def judge(case: Case) -> Judgement:
    failed = case.events_of(EventKind.COMMIT_FAILED) if case.events else []
    refusals = [event for event in failed if event.error in _ERRORS]
    if refusals:
        return _found(case, LogLines(case, refusals, refusals))
    return ABSENT if case.has_client_logs else undetermined(CLIENT_LOGS)


def _found(case: Case, lines: LogLines) -> Finding:
    limit = case.cluster.number(_LIMIT)
    codes = sorted({event.error for event in lines.events if event.error is not None})
    errors = listed([f"{ErrorCode(code).name} ({code})" for code in codes])
    evidence = lines.evidence
    if limit is not None:
        evidence.append(Evidence(f"{_LIMIT}={limit}", "settings of the brokers"))
    places = {
        f"{event.topic}-{event.partition}"
        for event in lines.events
        if event.topic and event.partition is not None
    }
    return RULE.finding(
        lines.severity(Severity.WARNING),
        case.group,
        f"Group {case.group} cannot commit: commits of {lines.who} were refused as too large, {errors}; "
        f"{lines.how_often}.",
        why="What it has read since its last accepted commit will be read and processed again after the next "
        "rebalance or restart.",
        evidence=evidence,
        remedies=[
            Remedy("Make the text shorter that the application adds to its offsets (commit metadata)."),
            Remedy(f"Or raise {_LIMIT} on all brokers (server.properties, then a rolling restart)."),
        ],
        partitions=sorted(places),
        members=lines.names,
        since=lines.first,
        check=describing(case, "--offsets"),
    )


RULE = Rule.of(
    __name__,
    judge,
    Presentation("has commits refused as too large", "have commits refused as too large", stops_group=True),
    asked_for=Sign.LOG_LINES,
    otherwise=undetermined(CLIENT_LOGS),
)
