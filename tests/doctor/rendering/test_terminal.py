"""The page for a person: verdict first, 80 columns, nothing that a terminal would obey."""

import subprocess

import pytest

from kelpie.cluster import ClusterView, Outage
from kelpie.doctor.diagnosis import Diagnosis, diagnose_all
from kelpie.doctor.rendering.terminal import WIDTH, render
from kelpie.model.quoting import harmless, quoted
from kelpie.observations import Unasked
from tests.doctor.building import (
    MINUTE,
    NOW,
    a_case,
    a_cluster,
    a_member,
    a_name_on,
    a_state,
    an_offsets_topic,
)

HIT = [a_name_on(43, prefix=prefix) for prefix in ("a-", "b-", "c-", "d-", "e-", "f-")]


def an_outage(*groups: str) -> Diagnosis:
    outages = {node: (Outage(node, NOW - MINUTE),) for node in (2, 3)}
    unasked = tuple(Unasked("broker", str(node), "refused") for node in (2, 3))
    cluster = a_cluster(*an_offsets_topic(p43=-1), dead=(2, 3), outages=outages, unasked=unasked)
    well = [a_case(a_name_on(0), cluster, states=[a_state()])]
    return diagnose_all(cluster, well + [a_case(group, cluster) for group in groups])


def test_the_first_line_is_the_verdict() -> None:
    """At three in the morning nobody reads further."""
    page = render(an_outage(*HIT[:3]))
    assert page.splitlines()[0] == "CRITICAL: 3 of 4 groups have no coordinator (brokers 2 and 3 are dead)."


def test_then_comes_what_is_hit_then_what_then_what_to_do() -> None:
    """In the order in which one asks."""
    page = render(an_outage(*HIT[:1]), is_full=True)
    parts = [
        "What is hit",
        f"groups      1 of 2: {HIT[0]}",
        "of __consumer_offsets have no leader",
        "2 of 3 dead: broker 2 (kafka-2:9092), broker 3 (kafka-3:9092)",
        "What happened",
        "NOTICE KLP100 broker-dead",
        "and so: CRITICAL KLP101 offsets-partition-leaderless · 1 group",
        "Why: Until it has a leader",
        f"Seen of {HIT[0]}:",
        "What to do:",
        f"$ kelpie rehome -b kafka-1:9092 {HIT[0]}",
        "Check without Kelpie:",
        "$ kafka-topics.sh --bootstrap-server kafka-1:9092 --describe --topic __consumer_offsets",
        "What could not be asked",
        "brokers 2, 3: refused",
    ]
    at = 0
    for part in parts:
        at = page.find(part, at)
        assert at >= 0, part


def test_all_fits_80_columns_but_commands() -> None:
    """Commands are pasted: a break in one would change it."""
    page = render(an_outage(*HIT, "x" * 200))
    for line in page.splitlines():
        assert len(line) <= WIDTH or line.lstrip().startswith("$ "), line


def test_many_of_the_same_are_cut_short_with_a_word() -> None:
    """A thousand groups are hit; the page stays a page."""
    many = [a_name_on(43, prefix=f"g{number}-") for number in range(300)]
    page = render(an_outage(*many))
    assert page.startswith("CRITICAL: 300 of 301 groups")
    assert len(page.splitlines()) <= 40
    assert "--full has them all" in page
    everything = render(an_outage(*many), is_full=True)
    assert all(f"$ kelpie rehome -b kafka-1:9092 {group}" in everything for group in many)


def test_names_cannot_command_the_terminal() -> None:
    """Whoever may create a group may choose its name; it must not clear screens or forge lines."""
    evil = a_name_on(43, prefix="\x1b[2J\x1b]0;owned\x07\nOK: all well\n\u202e")
    page = render(an_outage(evil))
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert not any(line.startswith("OK:") for line in page.splitlines())
    assert "\\x1b[2J" in page


def test_colour_is_an_ornament() -> None:
    """Without the escapes the text is the same."""
    plain, coloured = render(an_outage(HIT[0])), render(an_outage(HIT[0]), colour=True)
    assert coloured != plain
    assert coloured.replace("\x1b[31;1m", "").replace("\x1b[33;1m", "").replace("\x1b[0m", "") == plain


def test_all_is_well_is_one_line() -> None:
    """Who looks every morning wants to see it at once."""
    cluster = a_cluster()
    first = render(diagnose_all(cluster, [a_case("g", cluster, states=[a_state()])])).splitlines()[0]
    assert first == "OK: nothing wrong was found with 1 group."


def test_nothing_known_is_not_well() -> None:
    """No data is never OK."""
    cluster = ClusterView(NOW)
    first = render(diagnose_all(cluster, [a_case("g", cluster)])).splitlines()[0]
    assert first == "UNDETERMINED: 1 of 1 group could not be judged (g)."
    nobody = ClusterView(NOW, unasked=(Unasked("broker", "kafka-1:9092", "refused"),))
    assert render(diagnose_all(nobody, [])).startswith("UNKNOWN: not one broker answered")
    assert render(diagnose_all(a_cluster(), [])).startswith("NOTHING: no group is known")


def test_an_address_that_its_reason_names_is_not_named_twice() -> None:
    """It read "broker ?: 127.0.0.1:9093 is a controller"."""
    reason = "kafka-1:9093 is a controller of the cluster (KRaft), which answers no clients."
    nobody = ClusterView(NOW, unasked=(Unasked("broker", "kafka-1:9093", reason),))
    assert "\nNot asked: kafka-1:9093 is a controller of the cluster" in render(diagnose_all(nobody, []))


def test_groups_that_nobody_lists_any_more_are_named() -> None:
    """They may have been deleted; somebody knew them."""
    cluster = a_cluster()
    gone = a_case("gone", cluster, listed=False, known_from=("an earlier survey",), states=[a_state()])
    page = render(diagnose_all(cluster, [gone]), is_full=True)
    assert "Known, and not listed now" in page
    assert "gone: known from an earlier survey" in page


def test_nobody_answers_and_groups_are_known_from_before() -> None:
    """How they were is not how they are: that they were well is not said again."""
    nobody = ClusterView(NOW, unasked=(Unasked("broker", "kafka-1:9092", "refused"),))
    page = render(diagnose_all(nobody, [a_case("billing", nobody), a_case("orders", nobody)]), is_full=True)
    assert page.startswith("UNKNOWN: not one broker answered; nothing can be said about the 2 groups known")
    assert "  groups      2: billing, orders" in page
    assert "Undetermined" not in page


def test_a_group_that_nobody_knows_is_told_to_whoever_asks_for_it() -> None:
    """A name misspelt: "nothing wrong was found" would be taken for good news."""
    cluster = a_cluster()
    well = a_case("billing", cluster, listed=True, known_from=("listed by broker 1",), states=[a_state()])
    first = render(diagnose_all(cluster, [well, a_case("bilings", cluster, listed=False)])).splitlines()[0]
    assert first.startswith("UNDETERMINED: no broker knows the group bilings (misspelt")


def test_a_mere_risk_comes_after_what_is_wrong_now() -> None:
    """A group that is held up is worth more words than a replica that is missing."""
    at_risk = [row._replace(replicas=(1,), in_sync=(1,)) for row in an_offsets_topic()]
    cluster = a_cluster(*at_risk)
    lost = a_state("Stable", a_member("app-1", topic="nowhere"))
    page = render(diagnose_all(cluster, [a_case("billing", cluster, states=[lost])]))
    assert page.startswith("WARNING: 1 of 1 group has members that read nothing")
    assert page.find("WARNING KLP207") < page.find("WARNING KLP106")


def test_what_to_do_first_comes_first_for_all() -> None:
    """With two causes, the second one's first step would be found behind the first one's last resort."""
    both = a_cluster(*an_offsets_topic(p42=-1, p43=-1), dead=(1, 2, 3))
    groups = [a_name_on(42), a_name_on(43)]
    page = render(diagnose_all(both, [a_case(group, both) for group in groups]), is_full=True)
    starts = [at for at in range(len(page)) if page.startswith("    Start broker", at)]
    assert starts
    assert max(starts) < page.find("Last resort")


@pytest.mark.parametrize(
    "group",
    ["billing", "it's", "a b;$(id)", "evil\n\x1b[31mred\\n'x'", "zero\u200bwidth", "tab\tand\x01f", "😀"],
)
def test_a_command_means_the_group_when_it_is_pasted(group: str) -> None:
    """Names with control characters are possible, and a command that shows them spelt out meant another."""
    command = harmless(f"printf %s {quoted(group)}")
    assert subprocess.run(["bash", "-c", command], capture_output=True, check=True).stdout == group.encode()


def test_a_name_of_a_thousand_signs_does_not_fill_the_page() -> None:
    """The command has it in full."""
    long = a_name_on(43, prefix="x" * 1000)
    page = render(an_outage(long), is_full=True)
    assert f"groups      1 of 2: {'x' * 50}" in page
    assert f"$ kelpie rehome -b kafka-1:9092 {long}" in page
