"""What people know about is kept by cluster, by nobody else readable, and survives a broken store."""

from dataclasses import replace
from pathlib import Path

import pytest

from kelpie.acknowledgements import Acknowledgements, UnreadableAcknowledgements, parsed, written
from kelpie.observations import Observations
from kelpie.observations.acknowledgement import Acknowledgement
from kelpie.store import Store

NOW = 1_800_000_000_000
DAY = 24 * 3_600_000
KNOWN = Acknowledgement("batch-*", "KLP310", "warning", NOW + DAY, "ann", "moves on Monday", NOW)


def test_they_are_kept_by_cluster_and_replaced_by_name(tmp_path: Path) -> None:
    """A second one of the same group and code is a longer time, not a second line."""
    kept = Acknowledgements(tmp_path)
    assert kept.of("a") == []
    kept.add({"a": [KNOWN]}, NOW)
    kept.add({"a": [replace(KNOWN, until=NOW + 2 * DAY)], "b": [replace(KNOWN, group=None)]}, NOW)
    assert kept.of("a") == [replace(KNOWN, until=NOW + 2 * DAY)]
    assert kept.of("b") == [replace(KNOWN, group=None)]
    assert kept.remove("a", "batch-*", "KLP310", NOW)
    assert not kept.remove("a", "batch-*", "KLP310", NOW)
    assert kept.all().get("a", []) == []


def test_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    """Names of groups, and reasons, are nobody else's business."""
    kept = Acknowledgements(tmp_path)
    kept.add({"a": [KNOWN]}, NOW)
    assert all(path.stat().st_mode & 0o077 == 0 for path in tmp_path.iterdir())


def test_expired_ones_are_forgotten_after_a_while(tmp_path: Path) -> None:
    """They are listed for a month, so that one sees why a finding came back."""
    kept = Acknowledgements(tmp_path)
    kept.add({"a": [KNOWN]}, NOW)
    kept.add({"b": [KNOWN]}, NOW + 20 * DAY)
    assert kept.of("a") == [KNOWN]
    kept.add({"b": [KNOWN]}, NOW + 40 * DAY)
    assert kept.of("a") == []


def test_names_of_any_kind_survive_export_and_import() -> None:
    """Also a lone surrogate, which is no UTF-8."""
    rows = {"a": [replace(KNOWN, group="\ud800 'x'\n"), replace(KNOWN, group=None)]}
    assert parsed(written(rows), "x") == rows


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"version": 2, "clusters": {}}', '{"version": 1, "clusters": {"a": [{}]}}', '"x"'],
)
def test_what_is_no_such_file_is_refused_and_stays(text: str, tmp_path: Path) -> None:
    """What somebody wrote is not overwritten because a release does not understand it."""
    kept = Acknowledgements(tmp_path)
    kept.path.write_text(text)
    with pytest.raises(UnreadableAcknowledgements):
        kept.of("a")
    with pytest.raises(UnreadableAcknowledgements):
        kept.add({"a": [KNOWN]}, NOW)
    assert kept.path.read_text() == text


def test_the_store_remembers_how_bad_findings_were(tmp_path: Path) -> None:
    """A look at one group leaves what is known of the others."""
    store = Store(tmp_path)
    rows = Observations()
    store.remember("a", rows, NOW, found={("x", "KLP310"): "warning", (None, "KLP100"): "notice"})
    assert store.found("a") == {("x", "KLP310"): "warning", (None, "KLP100"): "notice"}
    store.remember("a", rows, NOW + 1, found={("y", "KLP309"): "critical"}, of_groups=["y"])
    assert store.found("a") == {("x", "KLP310"): "warning", ("y", "KLP309"): "critical"}
    store.remember("a", rows, NOW + 2, found={})
    assert store.found("a") == {}
    assert store.found("b") == {}
