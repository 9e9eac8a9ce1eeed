"""docs/tables.md."""

from pathlib import Path

from kelpie.pipeline.tables import TABLES
from kelpie.pipeline.tables.pages import page

DOCS = Path(__file__).parents[3] / "docs"


def test_page_in_the_repository_is_what_is_declared() -> None:
    """Write it anew with: python -m kelpie.pipeline.tables.pages docs/tables.md."""
    assert (DOCS / "tables.md").read_text(encoding="utf-8") == page()


def test_every_table_and_column_is_told() -> None:
    """With its type and what it means."""
    text = page()
    for table in TABLES.values():
        assert f"### {table.name}\n" in text
        for column in table.columns:
            assert column.meaning in text
