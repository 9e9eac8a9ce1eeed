"""The JSON of a diagnosis keeps to the published schema."""

import json
from pathlib import Path
from typing import Any

import jsonschema

from kelpie.cluster import ClusterView, Outage
from kelpie.doctor.diagnosis import Diagnosis, diagnose_all
from kelpie.doctor.rendering.json import render
from kelpie.observations import EventKind, Unasked
from tests.doctor.building import (
    MINUTE,
    NOW,
    a_case,
    a_cluster,
    a_name_on,
    an_offsets_topic,
    events,
)

SCHEMA = json.loads((Path(__file__).parents[3] / "docs" / "schemas/doctor.json").read_text())
HIT = a_name_on(43)


def an_outage() -> Diagnosis:
    outages = {node: (Outage(node, NOW - MINUTE, source="controller.log:7"),) for node in (2, 3)}
    cluster = a_cluster(
        *an_offsets_topic(p43=-1),
        dead=(2, 3),
        outages=outages,
        unasked=(Unasked("broker", "2", "refused", NOW),),
    )
    told = events(EventKind.NOT_AUTHORISED, NOW - 5 * MINUTE, group="ill")
    cases = [
        a_case(HIT, cluster, listed=False, known_from=("an earlier survey",)),
        a_case("ill", cluster, events=told),
        a_case("\ud800\x1b", cluster),
    ]
    return diagnose_all(cluster, cases)


def checked(diagnosis: Diagnosis) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(render(diagnosis))
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    return document


def test_the_schema_itself_is_sound() -> None:
    """A schema that accepts everything would prove nothing."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    document = checked(an_outage())
    for field in document:
        broken = {name: value for name, value in document.items() if name != field}
        assert list(jsonschema.Draft202012Validator(SCHEMA).iter_errors(broken)), field


def test_an_outage_is_written_as_the_schema_says() -> None:
    """Programs rely on it: alerts, tickets, other tools."""
    document = checked(an_outage())
    assert document["severity"] == "critical"
    finding = next(it for it in document["findings"] if it["group"] == HIT)
    assert (finding["code"], finding["verdict"], finding["severity"]) == ("KLP101", "present", "critical")
    assert finding["since"] == "2027-01-15T07:59:00.000Z"
    assert finding["remedies"][1]["command"] == f"kelpie rehome -b kafka-1:9092 {HIT}"
    assert finding["check"].startswith("kafka-topics.sh --bootstrap-server kafka-1:9092 --describe")
    assert document["blast_radius"]["brokers"] == [2, 3]
    assert HIT in document["blast_radius"]["groups"]
    assert document["unasked"][0]["name"] == "2"
    assert document["unlisted"] == [{"group": HIT, "known_from": ["an earlier survey"]}]
    assert {"group": "ill", "codes": ["KLP107"]} in document["ill_before"]


def test_what_is_undetermined_is_told_apart_from_what_is_found() -> None:
    """Too little data is no finding, and not silence either."""
    document = checked(diagnose_all(ClusterView(0), [a_case("g", ClusterView(0))]))
    assert document["findings"] == []
    assert document["severity"] is None
    assert document["at"] is None
    undecided = next(it for it in document["undetermined"] if it["code"] == "KLP101")
    assert (undecided["verdict"], undecided["groups"]) == ("undetermined", ["g"])


def test_names_of_any_kind_survive() -> None:
    """A lone surrogate cannot be written as UTF-8; as an escape it can."""
    text = render(an_outage())
    assert text.isascii()
    assert "\ud800\x1b" in json.loads(text)["groups"]
