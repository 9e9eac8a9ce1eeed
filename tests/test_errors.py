import csv
import dataclasses
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode as KioErrorCode

from kelpie.errors import ErrorCode, describe, info

FIXTURE = Path(__file__).parent / "data" / "errors-4.3.1.tsv"


def real_errors() -> list[dict[str, str]]:
    """Read what Java's enum Errors of Kafka 4.3.1 says."""
    with FIXTURE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_codes_and_names_are_those_of_kafka() -> None:
    """A code that is missing or misnamed would send an operator to the wrong page."""
    assert {code.value: code.name for code in ErrorCode} == {
        int(row["code"]): row["name"] for row in real_errors()
    }


@pytest.mark.parametrize("row", real_errors(), ids=lambda row: row["name"])
def test_record_agrees_with_kafka(row: dict[str, str]) -> None:
    """Whether a client retries, and whether it asks for metadata first, decides how long an outage lasts."""
    record = info(int(row["code"]))
    assert (record.code, record.name) == (int(row["code"]), row["name"])
    assert record.retriable is (row["retriable"] == "true")
    assert record.refreshes_metadata is (row["refreshes_metadata"] == "true")


@pytest.mark.parametrize("code", ErrorCode)
def test_kio_has_the_same_names_and_retries_the_same_codes(code: ErrorCode) -> None:
    """A second source, made from Kafka's sources by other people."""
    theirs = KioErrorCode(code.value)
    assert (theirs.name.upper(), theirs.retriable) == (code.name, info(code).retriable)


@pytest.mark.filterwarnings("ignore:.*_text is deprecated:DeprecationWarning")  # on import
def test_kafka_python_refreshes_metadata_after_the_same_codes() -> None:
    """A second source for the other flag. After 75 the client of Java waits for the broker to catch up."""
    from kafka import errors as kafka_python

    errors: list[Any] = [
        value
        for value in vars(kafka_python).values()
        if isinstance(value, type) and issubclass(value, kafka_python.BrokerResponseError)
    ]
    theirs = {error.errno for error in errors if error.invalid_metadata and error.errno is not None}
    ours = {code for code in ErrorCode if info(code).refreshes_metadata}
    assert theirs == ours | {ErrorCode.UNKNOWN_LEADER_EPOCH}


def test_every_meaning_is_one_sentence_and_no_two_are_alike() -> None:
    """It is printed in the middle of other text; a copied line would explain the wrong code."""
    meanings = [info(code).meaning for code in ErrorCode]
    assert all(meaning.endswith(".") and ". " not in meaning for meaning in meanings)
    assert len(set(meanings)) == len(meanings)


def test_names_of_kafka_0_9_are_kept_where_they_differ() -> None:
    """Old logs are searched for the old name."""
    assert {code.value: info(code).old_name for code in ErrorCode if info(code).old_name} == {
        -1: "UNKNOWN",
        6: "NOT_LEADER_FOR_PARTITION",
        14: "GROUP_LOAD_IN_PROGRESS",
        15: "GROUP_COORDINATOR_NOT_AVAILABLE",
        16: "NOT_COORDINATOR_FOR_GROUP",
    }


def test_describe_gives_code_and_name() -> None:
    """Operators search by either; an enum member must read like the bare number."""
    assert describe(15) == "15 COORDINATOR_NOT_AVAILABLE"
    assert describe(ErrorCode.COORDINATOR_NOT_AVAILABLE) == "15 COORDINATOR_NOT_AVAILABLE"
    assert describe(-1) == "-1 UNKNOWN_SERVER_ERROR"


def test_an_unknown_code_is_shown_as_unknown() -> None:
    """A broker newer than Kelpie must not break the report about it."""
    assert describe(999) == "999 (unknown error code)"
    record = info(999)
    assert (record.code, record.retriable, record.refreshes_metadata) == (999, False, False)


@given(st.integers())
def test_no_code_raises(code: int) -> None:
    """Describing happens while a failure is reported; it must not add one."""
    assert describe(code).startswith(f"{code} ")
    assert info(code).meaning


def test_a_record_cannot_be_changed() -> None:
    """Records are shared by all who ask."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        info(15).name = "OTHER"  # type: ignore[misc]
