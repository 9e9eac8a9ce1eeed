"""Questions of docs/questions.md: each query gives the answer that the page shows, in Spark and in DuckDB.

`KELPIE_RECORD=1` writes the answers into the page, by DuckDB.
"""

import os
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import duckdb
import pytest
from pyspark.sql import SparkSession

from kelpie.pipeline import duckdb_views, views
from kelpie.pipeline.tables import TABLES
from tests.pipeline import earlier_lakes

PAGE = Path(__file__).parents[2] / "docs" / "questions.md"
_QUESTION = re.compile(
    r"^## (?P<title>[^\n]+)\n.*?```sql\n(?P<query>.*?)```\n(?P<answer>(?:\n\|[^\n]*|\|[^\n]*|\n)*)",
    re.M | re.S,
)


class Question(NamedTuple):
    title: str
    query: str
    answer: str


QUESTIONS = [
    Question(*match.group("title", "query", "answer")) for match in _QUESTION.finditer(PAGE.read_text())
]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return earlier_lakes.unpack(earlier_lakes.NEWEST, tmp_path_factory.mktemp("questions"))


@pytest.fixture(scope="module")
def base(tables: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        duckdb_views(connection, tables)
        yield connection


def written(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [columns, ["---"] * len(columns), *([_text(value) for value in row] for row in rows)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _text(value: object) -> str:
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
    return "" if value is None else str(value)


def by_duckdb(base: duckdb.DuckDBPyConnection, question: Question) -> str:
    result = base.execute(question.query)
    return written([column[0] for column in result.description], result.fetchall())


def test_there_are_ten_questions_at_least() -> None:
    """The page is read by an expression: one that finds nothing would hold nothing to anything."""
    assert len(QUESTIONS) >= 10
    assert len(QUESTIONS) == PAGE.read_text().count("```sql")


@pytest.mark.skipif("KELPIE_RECORD" not in os.environ, reason="writes docs/questions.md anew, on request")
def test_answers_are_written_into_the_page(base: duckdb.DuckDBPyConnection) -> None:
    page = PAGE.read_text()
    for question in QUESTIONS:
        told = f"```sql\n{question.query}```\n"
        page = page.replace(f"{told}{question.answer}", f"{told}\n{by_duckdb(base, question)}\n")
    PAGE.write_text(page.rstrip() + "\n")


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.title)
def test_duckdb_gives_the_answer_of_the_page(base: duckdb.DuckDBPyConnection, question: Question) -> None:
    """People query tables where they have no Spark."""
    answer = by_duckdb(base, question)
    assert answer == question.answer.lstrip("\n").rstrip("\n") + "\n"
    assert answer.count("\n") > 2, "a question without an answer shows nothing"


def test_spark_gives_the_answers_of_the_page(spark: SparkSession, tables: Path) -> None:
    """The same text: what is a reserved word in one engine is none in the other."""
    assert set(views(spark, tables)) == set(TABLES)
    for question in QUESTIONS:
        frame = spark.sql(question.query)
        answer = written(frame.columns, [tuple(row) for row in frame.collect()])
        assert answer == question.answer.lstrip("\n").rstrip("\n") + "\n", question.title


def test_a_table_that_is_not_there_is_an_empty_view(spark: SparkSession, tmp_path: Path) -> None:
    """A query may be written before the first run."""
    views(spark, tmp_path)
    assert spark.table("group_health").columns == TABLES["group_health"].schema.names
    assert spark.table("group_health").isEmpty()
    with duckdb.connect() as connection:
        duckdb_views(connection, tmp_path)
        assert connection.execute("SELECT count(*) FROM group_health").fetchone() == (0,)
    assert not any(tmp_path.iterdir())
