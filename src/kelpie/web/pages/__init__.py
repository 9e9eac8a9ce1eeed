"""What each page shows, and its twin in JSON: one file per page."""

from collections.abc import Callable

from starlette.requests import Request

from kelpie.web.pages.brokers import brokers
from kelpie.web.pages.clusters import clusters, waiting
from kelpie.web.pages.group import group
from kelpie.web.pages.groups import groups
from kelpie.web.pages.incidents import incidents
from kelpie.web.pages.offsets_topic import offsets_topic
from kelpie.web.pages.overview import overview
from kelpie.web.pages.page import Page
from kelpie.web.pages.rules import all_rules, one_rule
from kelpie.web.pages.topics import topic, topics
from kelpie.web.watch import Watch

__all__ = ["OF_CLUSTER", "Page", "all_rules", "clusters", "one_rule", "waiting"]

OF_CLUSTER: dict[str, Callable[[Watch, Request], Page]] = {
    "/clusters/{cluster}/overview": overview,
    "/clusters/{cluster}/groups": groups,
    "/clusters/{cluster}/group": group,
    "/clusters/{cluster}/incidents": incidents,
    "/clusters/{cluster}/topics": topics,
    "/clusters/{cluster}/topic": topic,
    "/clusters/{cluster}/brokers": brokers,
    "/clusters/{cluster}/offsets-topic": offsets_topic,
}
