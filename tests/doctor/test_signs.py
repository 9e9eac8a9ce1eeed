"""Rules are asked only about groups in which they may find something."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest

from kelpie.cluster import ClusterView
from kelpie.doctor import diagnosis
from kelpie.doctor.case import Case
from kelpie.doctor.cases import build
from kelpie.doctor.diagnosis import diagnose_all
from kelpie.doctor.finding import Finding
from kelpie.doctor.glances import Glances
from kelpie.doctor.group_positions import LastOffsets, Positions
from kelpie.doctor.rule import Rule
from kelpie.doctor.rules import rules
from kelpie.errors import ErrorCode
from kelpie.evidence import read_evidence
from kelpie.model.names import TopicPartition
from kelpie.observations import TopicView
from kelpie.observations.group_offsets import GroupOffsets
from tests.doctor.asking import names_of, wrongly_left_out
from tests.doctor.building import (
    MINUTE,
    NOW,
    a_case,
    a_cluster,
    a_committed,
    a_member,
    a_state,
    a_view,
    an_answer,
    an_end,
    an_offsets_topic,
    commits,
)
from tests.doctor.matrix.recording import file_of, recorded
from tests.evidence import NAMES, unpacked

PARTITIONS = 10


def _cluster(of_home: int = 1, **fields: Any) -> ClusterView:
    """`of_home`: the leader of all partitions of the offsets topic; -1: there is none."""
    homes = an_offsets_topic() if of_home > 0 else [a_view(number, -1) for number in range(50)]
    views = [a_view(number, 1, topic="orders", leader_epoch=4) for number in range(PARTITIONS)]
    ends = [an_end(1000, partition=number, leader_epoch=4) for number in range(PARTITIONS)]
    looks = (NOW - 10 * MINUTE, NOW)
    topics = {"orders": tuple(TopicView("orders", "id", told_by=1, at=at) for at in looks)}
    settings = {("broker", "group.max.size"): "1000"}
    known = replace(a_cluster().known_topics, views=topics)
    return a_cluster(*homes, *views, ends=ends, settings=settings, known_topics=known, **fields)


def _healthy(cluster: ClusterView, number: int, **fields: Any) -> Case:
    """It has read everything, and committed it a minute ago; a look ten minutes ago saw it further back."""
    group = f"group-{number:05}"
    history, told = [], {}
    for partition in range(PARTITIONS):
        moments = (NOW - 2 * MINUTE, 990), (NOW - MINUTE, 1000)
        history += commits(*moments, group=group, partition=partition, leader_epoch=4)
        name = TopicPartition("orders", partition)
        now = a_committed(1000, group=group, partition=partition, leader_epoch=4)
        told[name] = (now._replace(offset=900, at=NOW - 10 * MINUTE), now)
    given: dict[str, Any] = {
        "states": [a_state("Empty", group=group)],
        "answers": [an_answer(asked="OffsetFetch", group=group)],
        "commits": history,
        "committed": {name: rows[-1] for name, rows in told.items()},
        "committed_over_time": told,
        "history_from": NOW - 10 * MINUTE,
        **fields,
    }
    return a_case(group, cluster, **given)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """How often each rule is asked about a group."""
    counts: Counter[str] = Counter()

    def counting(rule: Rule) -> Rule:
        judge = rule.judge
        if judge is None:
            return rule

        def counted(case: Case) -> Any:
            counts[rule.code] += 1
            return judge(case)

        return replace(rule, judge=counted)

    counted_rules = {code: counting(rule) for code, rule in rules().items()}
    monkeypatch.setattr(diagnosis, "rules", lambda: counted_rules)
    diagnosis.steps.cache_clear()
    yield counts
    diagnosis.steps.cache_clear()


@pytest.mark.parametrize("groups", [1, 40])
def test_no_rule_is_asked_about_groups_that_have_read_everything(asked: Counter[str], groups: int) -> None:
    """Ten thousand healthy groups must not cost forty rules each."""
    cluster = _cluster()
    found = diagnose_all(cluster, [_healthy(cluster, number) for number in range(groups)])
    assert not asked
    assert not [finding for finding in found.findings if finding.group is not None]
    assert {question.groups for question in found.open if question.groups} == {found.groups}


def test_what_rules_say_unasked_is_worked_out_once_for_all_such_groups(asked: Counter[str]) -> None:
    """What is done for each rule must not be done for each group."""
    del asked
    cluster = _cluster()
    for groups in (1, 40):
        diagnose_all(cluster, [_healthy(cluster, number) for number in range(groups)])
        assert diagnosis.steps.cache_info().misses == 1


def test_of_many_groups_only_the_sick_one_is_looked_at(asked: Counter[str]) -> None:
    """One of forty stands at an old offset."""
    cluster = _cluster()
    cases = [_healthy(cluster, number) for number in range(40)]
    name = TopicPartition("orders", 3)
    behind = cases[7].committed[name]._replace(offset=20)
    cases[7] = replace(cases[7], committed={**cases[7].committed, name: behind})
    diagnose_all(cluster, cases)
    assert "KLP310" in asked
    assert set(asked.values()) == {1}


def test_members_cost_the_rules_on_members_only(asked: Counter[str]) -> None:
    """The positions of a group that has read everything are not looked at, whoever is in it."""
    cluster = _cluster()
    members = [a_member("app-1", *range(5)), a_member("app-2", *range(5, 10))]
    group = "group-00000"
    diagnose_all(cluster, [_healthy(cluster, 0, states=[a_state("Stable", *members, group=group)])])
    assert asked
    assert not [code for code in asked if code.startswith("KLP3")]


def _cut_off(cluster: ClusterView, number: int, **fields: Any) -> Case:
    """It had read everything when its coordinator could be asked; now brokers name none."""
    group = f"group-{number:05}"
    names = tuple(TopicPartition("orders", partition) for partition in range(PARTITIONS))
    looks = [
        GroupOffsets(group, names, (1000,) * PARTITIONS, (4,) * PARTITIONS, ("",) * PARTITIONS, at)
        for at in (NOW - 10 * MINUTE, NOW - MINUTE)
    ]
    given: dict[str, Any] = {
        "states": [a_state("Empty", group=group, at=NOW - MINUTE)],
        "answers": [an_answer(ErrorCode.COORDINATOR_NOT_AVAILABLE, group=group)],
        "commits": Positions(),
        "committed": LastOffsets(looks[-1]),
        "committed_over_time": Positions(looks),
        "known_from": ("an earlier survey",),
        **fields,
    }
    return a_case(group, cluster, **given)


def test_of_groups_without_a_coordinator_two_rules_are_asked(asked: Counter[str]) -> None:
    """A dead broker hits thousands of groups: KLP101 tells of each, KLP309 says whether they had members."""
    cluster = _cluster(of_home=-1)
    cases = [_cut_off(cluster, number) for number in range(40)]
    found = diagnose_all(cluster, cases)
    assert asked == {"KLP101": 40, "KLP309": 40}
    assert [finding.code for finding in found.findings if finding.group is not None] == ["KLP101"] * 40
    assert not [problem for case in cases for problem in wrongly_left_out(case)]


def test_groups_of_one_partition_share_what_is_said_of_it() -> None:
    """Evidence and remedies of a partition are made once, and not for each of its groups."""
    cluster = _cluster(of_home=-1)
    found = diagnose_all(cluster, [_cut_off(cluster, number) for number in range(100)])
    by_cause: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in found.findings:
        if finding.group is not None:
            by_cause[finding.cause].append(finding)
    several = [findings for findings in by_cause.values() if len(findings) > 1]
    assert several
    for first, *rest in several:
        assert all(other.evidence[0] is first.evidence[0] for other in rest)
        assert all(other.remedies[-1] is first.remedies[-1] for other in rest)
        assert all(other.remedies[-2] != first.remedies[-2] for other in rest), "each is moved by its name"


@pytest.mark.parametrize(
    "fields",
    [
        {"answers": [an_answer(ErrorCode.GROUP_AUTHORIZATION_FAILED)]},
        {"answers": [an_answer(ErrorCode.NOT_COORDINATOR, "OffsetFetch")]},
        {"answers": [an_answer(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "OffsetFetch")]},
        {"answers": [an_answer(node_id=2)]},
        {"answers": [], "states": []},
        {"committed_over_time": {}},
        {"history_from": NOW - 10 * MINUTE},
        {"states": [a_state("PreparingRebalance", at=NOW - MINUTE)]},
    ],
    ids=str,
)
@pytest.mark.parametrize("leader", [-1, 1])
def test_rules_that_are_left_out_would_have_said_the_same_of_such_groups(
    fields: dict[str, Any], leader: int
) -> None:
    """What a broker answers, and whether anything can be compared, decides which rules are asked."""
    assert not list(wrongly_left_out(_cut_off(_cluster(of_home=leader), 0, **fields)))


@pytest.mark.parametrize("name", NAMES)
def test_rules_that_are_left_out_would_have_said_the_same_of_recordings(name: str) -> None:
    cluster, cases = build(read_evidence([unpacked(name)]))
    glances = Glances(cluster)
    assert not [problem for case in cases for problem in wrongly_left_out(case, glances)]


@pytest.mark.parametrize("situation", ["quiet-run", "broker-killed", "topic-deleted"])
def test_rules_that_are_left_out_would_have_said_the_same_of_the_matrix(situation: str) -> None:
    """All kinds of groups on real Kafka; every sixth moment."""
    left_out = 0
    for _, _, cluster, cases in islice(recorded(file_of(situation, "4.3.1")), 0, None, 6):
        glances = Glances(cluster)
        assert not [problem for case in cases for problem in wrongly_left_out(case, glances)]
        left_out += sum(not rule.asked_for & glances.at(case) for case in cases for rule in rules().values())
    assert left_out > 100


def test_a_group_of_another_kind_has_all_signs() -> None:
    """Share groups and groups in ZooKeeper have no committed offsets: no rule is left out for that."""
    cluster = a_cluster()
    share = a_case("share", cluster, states=[a_state("Stable", group="share", kind="share")])
    in_zookeeper = a_case("old", cluster, in_zookeeper=True)
    for case in (share, in_zookeeper):
        assert {"BEHIND", "LOG_LINES", "NO_EPOCH"} <= set(names_of(Glances(cluster).at(case)))
