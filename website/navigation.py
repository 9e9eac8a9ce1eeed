"""Where each page of the documentation stands in the site.

A page that no section names is listed in the last one, so that a new page can be found before somebody gives
it a better place.
"""

import re
from pathlib import Path
from typing import TypeAlias

Entry: TypeAlias = dict[str, "str | list[Entry]"]
"""A title with a page, or with the entries below it. As the generator's configuration has it."""

SECTIONS: dict[str, dict[str, str]] = {
    "Start": {
        "Kelpie": "index.md",
        "From alarm to repair": "tutorial.md",
    },
    "How to": {
        "All tasks": "how-to/README.md",
        "A group has stopped": "how-to/group-stopped.md",
        "The cluster is half dead": "how-to/cluster-half-dead.md",
        "Lag grows": "how-to/lag-grows.md",
        "Reset offsets safely": "how-to/reset-offsets.md",
        "Move a group": "how-to/move-a-group.md",
        "Recover offsets from disks": "how-to/recover-offsets.md",
        "Watch a fleet": "how-to/watch-a-fleet.md",
        "Alert in Prometheus": "how-to/alert-in-prometheus.md",
        "Rehearse a failure in CI": "how-to/rehearse-a-failure.md",
        "Ask from Python": "how-to/ask-from-python.md",
    },
    "Examine": {
        "Doctor": "doctor.md",
        "Evidence in files": "evidence.md",
        "Groups at a glance": "groups.md",
        "Pages in a browser": "serve.md",
        "Metrics": "metrics.md",
        "Probe": "probe.md",
        "Peek": "peek.md",
    },
    "Repair": {
        "Repairs": "repair.md",
        "Guard": "guard.md",
        "Mappings of KoP": "mappings.md",
    },
    "Collect and compute": {
        "Collect": "collect.md",
        "Pipeline": "pipeline.md",
        "Spark clusters": "spark-clusters.md",
        "HDFS, S3 and other stores": "stores.md",
        "What a fleet costs": "fleet.md",
        "Databricks": "databricks.md",
        "Amazon EMR": "emr.md",
        "Google Dataproc": "dataproc.md",
        "Tables": "tables.md",
        "Questions to the tables": "questions.md",
        "Spark's queries as groups": "spark-consumers.md",
        "Whose fetch is this?": "attribution.md",
    },
    "Reproduce": {
        "Lab": "lab.md",
        "Consume": "consume.md",
        "Consumers of Kafka 0.8": "zookeeper-consumers.md",
    },
    "Program against it": {
        "Python": "python.md",
        "Kelpie from Python": "python.md",
        "Admin client": "admin.md",
        "Assistants": "mcp.md",
    },
    "Reference": {
        "Commands": "commands.md",
        "Configuration": "configuration.md",
        "Exit codes": "exit-codes.md",
        "What --json prints": "schemas/index.md",
        "Benchmarks": "benchmarks.md",
        "Comparison": "comparison.md",
    },
    "The project": {
        "Architecture": "architecture.md",
        "Contributing": "contributing.md",
        "Security": "security.md",
        "Roadmap": "roadmap.md",
    },
}
RULES, REST = "Rules", "Reference"
_FAMILY = re.compile(r"^## (.+)$|\[(KLP\d{3})\]\((KLP\d{3}\.md)\) \| ([\w-]+) ", re.M)


def entries(pages: Path) -> list[Entry]:
    """The navigation of the pages in a folder."""
    named = {page for section in SECTIONS.values() for page in section.values()}
    sections = {title: dict(section) for title, section in SECTIONS.items()}
    others = {page.relative_to(pages).as_posix() for page in pages.rglob("*.md")} - named
    others = {page for page in others if not page.startswith("rules/")}
    sections[REST] |= {_title(pages / page): page for page in sorted(others)}
    navigation: list[Entry] = []
    for title, section in sections.items():
        below: list[Entry] = [{name: page} for name, page in section.items()]
        if title == "Examine":
            below.append({RULES: _rules(pages / "rules")})
        navigation.append({title: below})
    return navigation


def _rules(folder: Path) -> list[Entry]:
    """The list of the rules, then the rules by family, as the list has them."""
    families: dict[str, list[Entry]] = {}
    for found in _FAMILY.finditer((folder / "README.md").read_text(encoding="utf-8")):
        family, code, page, name = found.groups()
        if family:
            families[family] = rules = []
        else:
            rules.append({f"{code} {name}": f"rules/{page}"})
    by_family: list[Entry] = [{family: rules} for family, rules in families.items()]
    return [{"All rules": "rules/README.md"}, *by_family]


def _title(page: Path) -> str:
    return page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ").replace("`", "")
