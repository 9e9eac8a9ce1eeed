"""/metrics, as Prometheus's own parser reads it."""

import re

from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from kelpie.web.exposition import EXPORTERS
from kelpie.web.families import families_in

Samples = dict[str, list[tuple[dict[str, str], float]]]
KINDS = {each.name: each.kind for names in EXPORTERS.values() for each in families_in(names.families)}


def scraped(browser: TestClient) -> Samples:
    """Samples by name. Each family stands in one place, with its type and a help."""
    text = browser.get("/metrics").text
    families = list(text_string_to_metric_families(text))
    samples: Samples = {}
    for family in families:
        assert family.documentation
        for each in family.samples:
            assert family.type == KINDS[each.name]
            samples.setdefault(each.name, []).append((dict(each.labels), each.value))
    assert len(samples) == len(families) == len(re.findall("^# TYPE", text, re.M))
    return samples
