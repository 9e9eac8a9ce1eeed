"""Sentences are found in the source of modules, whatever way they are put together."""

from pathlib import Path

import pytest

from kelpie.web.translation.extraction import templates


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('text = "No broker answers."', ["No broker answers."]),
        ('text = f"Group {group} has {len(names)} of {total:,}."', ["Group {0} has {1#} of {2#}."]),
        ("text = f\"{who} {'is' if one else 'are'} dead\"", ["{0} {a:is|are} dead"]),
        ('text = f"Begin with {a}{b}" + (", and stop." if x else ".")', ["Begin with {0}{a:, and stop.|.}"]),
        ("text = f\"led by {leader or 'no broker'} now\"", ["no broker", "led by {0} now"]),
        ('text = counted(3, "partition")', ["{0#} {a:partition|partitions}"]),
        ("text = f\"{numbered('broker', dead)} stopped\"", ["{a:broker|brokers} {0}", "{0} stopped"]),
        ('step = "Set {} to {}."', ["Set {0} to {1}."]),
        ('"""A docstring is not said."""', []),
        ('if state == "not said": text = words["neither this"]', []),
        ('command = commands.kafka("kafka-topics", "--describe --all")', []),
    ],
)
def test_what_a_module_says_is_found(tmp_path: Path, source: str, expected: list[str]) -> None:
    (tmp_path / "module.py").write_text(source)
    assert list(templates(tmp_path / "module.py")) == expected
