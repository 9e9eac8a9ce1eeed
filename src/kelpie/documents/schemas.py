"""The published schema of each document, made of its declaration. docs/schemas/ has them as files."""

import importlib
from typing import Any, NamedTuple


class Source(NamedTuple):
    """Where a document is declared."""

    module: str
    name: str
    title: str


DECLARED = {
    "ack": Source("acknowledgements", "AcknowledgementsDocument", "kelpie ack --json"),
    "collect": Source("collected", "RoundDocument", "kelpie collect --json, line by line"),
    "consume": Source("consumed", "ConsumeDocument", "kelpie consume --json, line by line"),
    "explain": Source("rules", "RulesDocument", "kelpie explain --json"),
    "groups": Source("groups", "GroupsDocument", "kelpie groups --json"),
    "lab-list": Source("lab", "ScenariosDocument", "kelpie lab list --json"),
    "lab-run": Source("lab", "PlayDocument", "kelpie lab run --json"),
    "lab-up": Source("lab", "LabClusterDocument", "kelpie lab up --json"),
    "mappings-check": Source("mappings", "MappingsDocument", "kelpie mappings check --json"),
    "names": Source("names", "NamesDocument", "kelpie names --json"),
    "offsets-recover": Source("offsets", "OffsetsDocument", "kelpie offsets recover --json"),
    "peek": Source("peek", "PeekDocument", "kelpie peek --json"),
    "pipeline-run": Source(
        "pipeline_run",
        "PipelineRunDocument",
        "kelpie pipeline run --json",
    ),
    "plan": Source("plan", "PlanDocument", "--json of every command that repairs"),
    "probe": Source("probe", "ProbeDocument", "kelpie probe --json"),
    "real": Source("real", "RealClustersDocument", "kelpie real … --json"),
    "simulate-attribution": Source("simulations", "PlanTrialsDocument", "kelpie simulate attribution --json"),
    "simulate-rebalance": Source(
        "simulations", "RebalancesDocument", "kelpie simulate zookeeper-rebalance --json"
    ),
    "undo-list": Source("changes", "ChangesDocument", "kelpie undo --list --json"),
    "where": Source("where", "WhereDocument", "kelpie where --json"),
}
"""By the name of the schema."""
BY_HAND = ("doctor",)
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema_of(name: str) -> dict[str, Any]:
    """As JSON Schema. Needs pydantic."""
    from pydantic import TypeAdapter  # noqa: PLC0415 - only those who make the documentation have it.

    source = DECLARED[name]
    declared = getattr(importlib.import_module(f"kelpie.documents.{source.module}"), source.name)
    made = TypeAdapter(declared).json_schema(mode="serialization")
    return {"$schema": _DIALECT, **_without_titles(made), "title": source.title}


def _without_titles(schema: Any) -> Any:
    """pydantic names each field once more, with a capital."""
    if isinstance(schema, list):
        return [_without_titles(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: _without_titles(each) for name, each in value.items()}
        if key in ("properties", "$defs")
        else _without_titles(value)
        for key, value in schema.items()
        if key != "title"
    }
