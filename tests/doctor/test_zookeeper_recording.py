"""Nine groups of Kafka 0.8.2.2 whose rebalances failed, recovered or went well: each comes out as it was."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest

from kelpie.doctor.cases import build
from kelpie.doctor.diagnosis import Diagnosis, diagnose_all
from kelpie.doctor.finding import Finding, Severity
from kelpie.evidence import read_evidence
from kelpie.model.time import Instant
from kelpie.observations import Observations
from tests.evidence import truth, unpacked

NAME = "kafka-0.8.2.2-rebalance-failure"
FAILED, CONFLICT, UNOWNED, SETTINGS, STALE, EXPIRED, ZOMBIE = (
    *("KLP501", "KLP502", "KLP503", "KLP504", "KLP505", "KLP506"),
    "KLP508",
)
RIGHT = {
    "orders-a": set(),
    "orders-b-watch": {FAILED, CONFLICT, UNOWNED, SETTINGS, STALE},
    "orders-b-start": {FAILED, CONFLICT, SETTINGS, STALE},
    "orders-b-stuck": {FAILED, CONFLICT, UNOWNED, SETTINGS},
    "orders-b-zombie": {FAILED, CONFLICT, UNOWNED, SETTINGS, STALE, ZOMBIE},
    "orders-c": {CONFLICT, UNOWNED, STALE},
    "orders-d": {STALE, EXPIRED},
    "orders-d-fail": {FAILED, CONFLICT, UNOWNED, SETTINGS, STALE, EXPIRED},
    "orders-e": {CONFLICT, UNOWNED, STALE},
}
"""By the truth beside the recording: what was done to each group, and what followed."""
_STRETCH = re.compile(r"\s+(\S+) \.\. (\S+) \((\S+) s\) unowned: partitions (\S+)")
_EXCEPTIONS = re.compile(r"\s+(app-\d+)(?: \(run 2\))?: .* exceptions ([1-9])")
CLOCKS_MS = 300
"""Owners were polled every 0.1 s, and logs are written a little before or after."""


def folder() -> Path:
    return unpacked(NAME)


@cache
def observed(*parts: str) -> Observations:
    return read_evidence([folder() / part for part in parts] if parts else [folder()])


def diagnosed(rows: Observations) -> Diagnosis:
    return diagnose_all(*build(rows))


def told(findings: Iterable[Finding]) -> dict[str, set[str]]:
    codes: defaultdict[str, set[str]] = defaultdict(set)
    for finding in findings:
        codes[finding.group or ""].add(finding.code)
    return dict(codes)


def the(code: str, group: str, findings: Iterable[Finding]) -> Finding:
    (finding,) = (finding for finding in findings if (finding.code, finding.group) == (code, group))
    return finding


def blocks() -> Iterator[tuple[str, list[str]]]:
    """Each group of the truth, with its lines."""
    group = ""
    lines: list[str] = []
    for line in (truth(NAME) / "groups.txt").read_text().splitlines():
        if line in RIGHT:
            if group:
                yield group, lines
            group, lines = line, []
        lines.append(line)
    yield group, lines


def at(time: str) -> Instant:
    return round(datetime.fromisoformat(f"2026-11-15T{time}").replace(tzinfo=UTC).timestamp() * 1000)


def test_every_group_comes_out_as_its_truth_says_and_nothing_else_is_claimed() -> None:
    """Logs, settings and dumps together. All of it was over when the recording ended, but the settings."""
    diagnosis = diagnosed(observed())
    assert set(diagnosis.groups) == set(RIGHT)
    assert told(diagnosis.findings) == {group: codes for group, codes in RIGHT.items() if codes}
    assert {finding.code for finding in diagnosis.findings if finding.until is None} == {SETTINGS}
    worst = {
        group: max(f.severity for f in diagnosis.findings if f.group == group)
        for group in told(diagnosis.findings)
    }
    assert {group for group, severity in worst.items() if severity is Severity.NOTICE} == {
        "orders-c",
        "orders-e",
    }
    assert (diagnosis.unlisted, diagnosis.unheard_of) == ((), ())


def test_those_who_gave_up_are_those_of_the_truth() -> None:
    """By name, and only those: the processes that logged ConsumerRebalanceFailedException."""
    findings = diagnosed(observed()).findings
    for group, lines in blocks():
        failed = {match[1] for line in lines if (match := _EXCEPTIONS.match(line))}
        members = {name for f in findings if (f.code, f.group) == (FAILED, group) for name in f.members}
        assert {name.removeprefix(f"{group}_")[:6] for name in members} == failed, group


def test_partitions_without_an_owner_are_those_that_were_polled() -> None:
    """The recorder polled owners every 0.1 s; logs tell the same, to a few tenths of a second."""
    findings = diagnosed(observed("consumers", "servers")).findings
    for group, lines in blocks():
        stretches = [match.groups() for line in lines if (match := _STRETCH.match(line))]
        long = [(since, until, numbers) for since, until, length, numbers in stretches if float(length) >= 3]
        partitions = {f"orders-events-{number}" for *_, numbers in long for number in numbers.split(",")}
        if not long:
            assert UNOWNED not in told(findings).get(group, set())
            continue
        finding = the(UNOWNED, group, findings)
        assert set(finding.partitions) == partitions
        assert abs((finding.since or 0) - min(at(since) for since, *_ in long)) < CLOCKS_MS
        assert abs((finding.until or 0) - max(at(until) for _, until, _ in long)) < CLOCKS_MS


@pytest.mark.parametrize("part", ["consumers", "servers", "dumps"])
def test_each_kind_of_file_alone_claims_nothing_that_was_not_so(part: str) -> None:
    """Logs of consumers, the log of ZooKeeper, snapshots of its tree: an operator seldom has them all."""
    claims = told(diagnosed(observed(part)).findings)
    assert claims
    for group, codes in claims.items():
        assert codes <= RIGHT[group]


def test_the_log_of_zookeeper_alone_has_every_conflict() -> None:
    """Brokers' logs name no group; ZooKeeper's refuses a node that exists."""
    claims = told(diagnosed(observed("servers")).findings)
    assert {group for group, codes in claims.items() if CONFLICT in codes} == {
        group for group, codes in RIGHT.items() if CONFLICT in codes
    }


def dumps() -> list[Path]:
    return sorted((folder() / "dumps").glob("*.json"))


def test_one_snapshot_alone_never_suffices() -> None:
    """Of 35 moments, some in the midst of a rebalance: each by itself leaves the question open."""
    for path in dumps():
        diagnosis = diagnosed(read_evidence([path]))
        assert diagnosis.findings == (), path.name


@pytest.mark.parametrize("with_settings", [False, True])
def test_snapshots_in_their_order_claim_nothing_that_was_not_so(with_settings: bool) -> None:
    """At each of 35 moments, with all dumps so far. The settings of the consumers shorten the patience."""
    rows = Observations()
    if with_settings:
        rows.add(read_evidence(sorted((folder() / "consumers").glob("*.properties"))))
    for path in dumps():
        rows.add(read_evidence([path]))
        claims = told(diagnosed(rows).findings)
        assert "orders-a" not in claims
        for group, codes in claims.items():
            assert codes <= RIGHT[group], path.name


def test_snapshots_and_settings_show_who_has_given_up() -> None:
    """Without any log: app-01 stands in two dumps with nothing, for longer than its retries take."""
    settings = sorted((folder() / "consumers").glob("orders-b-watch*.properties"))
    until = [path for path in dumps() if path.name[:2] <= "09"]
    findings = diagnosed(read_evidence([*until, *settings])).findings
    finding = the(FAILED, "orders-b-watch", findings)
    assert finding.severity is Severity.CRITICAL
    assert finding.until is None
    assert [name.removeprefix("orders-b-watch_")[:6] for name in finding.members] == ["app-01"]
    assert the(UNOWNED, "orders-b-watch", findings).partitions == tuple(
        f"orders-events-{number}" for number in (0, 1, 4, 5)
    )


def test_in_the_midst_of_the_incident_it_is_critical(tmp_path: Path) -> None:
    """Logs as an operator has them when the phone rings, at 22:11:50. The group itself says nothing more."""
    for path in (folder() / "consumers").glob("*.log"):
        lines = path.read_text().splitlines(keepends=True)
        early = [line for line in lines if not line.startswith("[") or line[12:20] < "22:11:50"]
        (tmp_path / path.name).write_text("".join(early))
    findings = diagnosed(read_evidence([tmp_path])).findings
    assert the(FAILED, "orders-b-watch", findings).severity is Severity.CRITICAL
    unowned = the(UNOWNED, "orders-b-watch", findings)
    assert (unowned.severity, unowned.until) == (Severity.CRITICAL, None)
    assert "orders-a" not in told(findings)


def test_the_text_of_a_dump_says_what_its_json_says() -> None:
    """Both were written at the same moment, by the same program."""
    for path in dumps():
        text, document = (read_evidence([each]) for each in (path.with_suffix(".txt"), path))
        of_text = [row for row in text.zookeeper_groups if row.registrations is not None]
        assert [(row.group, row.registrations, row.owners, row.offsets) for row in of_text] == [
            (row.group, row.registrations, row.owners, row.offsets) for row in document.zookeeper_groups
        ], path.name
        assert {row.at for row in of_text} == {row.at for row in document.zookeeper_groups}


def test_the_offset_checker_beside_a_dump_gives_the_lag() -> None:
    """Its table ends the text: committed offsets, ends of logs, and when it was run."""
    rows = read_evidence([folder() / "dumps" / "05_orders-b-watch_during-failure.txt"])
    ends = {row.partition: (row.latest, row.at) for row in rows.ends}
    assert ends[3] == (13, at("22:11:42.384"))
    checked = next(row for row in rows.zookeeper_groups if row.registrations is None)
    assert {row.partition: row.offset for row in checked.offsets}[3] == 8
