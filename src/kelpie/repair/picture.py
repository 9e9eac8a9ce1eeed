"""The cluster as far as a repair needs it: brokers that live, the offsets topic, and the topics in question.

It is a survey without groups: it creates nothing and joins nothing.
"""

from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace

from kelpie.client.admin.asking import Asking
from kelpie.client.admin.topics import ask_metadata, views_of
from kelpie.client.client_errors import ClientError
from kelpie.client.nodes import Nodes
from kelpie.client.survey import SurveyOptions, survey, wall_clock
from kelpie.cluster import ClusterView, build_cluster
from kelpie.observations import OFFSETS_TOPIC, Observations

_BROKERS_ONLY = SurveyOptions(offsets=False, ends=False, transactions=False, epochs=False, settings=False)


async def survey_brokers(nodes: Nodes) -> Observations:
    """Brokers and the offsets topic, as rows."""
    nodes.forget_failures()
    return await survey(nodes, groups=[], options=_BROKERS_ONLY)


async def survey_cluster(nodes: Nodes, topics: Collection[str] = ()) -> ClusterView:
    """Brokers, the offsets topic, these topics; on clusters before 2.1, all topics."""
    seen = await survey_brokers(nodes)
    alive = [broker.node_id for broker in seen.brokers if broker.alive]
    asking = Asking(nodes)
    names = [OFFSETS_TOPIC, *sorted(set(topics) - {OFFSETS_TOPIC})]
    for node in alive:
        with suppress(ClientError):  # Another broker may know.
            await asking.connect(node)
            response, at = await ask_metadata(asking, node, names)
            for topic in response.topics:
                if topic.name != OFFSETS_TOPIC:
                    seen.partitions += views_of(topic, node, at, asking.source(node))
            break
    bootstrap = nodes.settings.bootstrap_servers
    cluster = build_cluster(seen, now=wall_clock(), bootstrap=bootstrap)
    listed = frozenset(group for listing in seen.listings for group in listing.groups)
    return replace(cluster, listed_groups=listed)
