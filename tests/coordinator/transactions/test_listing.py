"""DescribeTransactions and ListTransactions."""

from typing import Any

import pytest

from kelpie.coordinator.transactions import list_transactions
from kelpie.errors import ErrorCode
from kelpie.wire.api.list_transactions import ListTransactionsRequest
from tests.coordinator.transactions.driver import Driver


def listed(driver: Driver, **filters: Any) -> list[str]:
    request = ListTransactionsRequest(**{"state_filters": [], "producer_id_filters": [], **filters})
    response = list_transactions(driver.shard.transactions.values(), request, driver.now)
    assert response.error_code == ErrorCode.NONE
    return [each.transactional_id for each in response.transaction_states]


@pytest.fixture
def driver() -> Driver:
    driver = Driver()
    driver.producer(driver.init_producer_id("empty"))
    driver.begin("open")
    driver.now += 100
    return driver


def test_an_unknown_id_is_not_found() -> None:
    """KIP-664: an operator looks for a hanging transaction, perhaps at the wrong id."""
    driver = Driver()
    assert driver.shard.describe("t").error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert driver.shard.describe("").error_code == ErrorCode.INVALID_REQUEST


def test_a_description_holds_what_an_operator_needs(driver: Driver) -> None:
    """Who, since when, for how long, where."""
    described = driver.shard.describe("open")
    assert (described.error_code, described.transaction_state) == (ErrorCode.NONE, "Ongoing")
    assert (described.producer_id, described.producer_epoch) == (1001, 0)
    assert described.transaction_timeout_ms == 60_000
    assert described.transaction_start_time_ms == driver.now - 100


def test_without_filters_all_are_listed(driver: Driver) -> None:
    """The survey asks every broker."""
    assert listed(driver) == ["empty", "open"]


def test_filters_narrow_the_list(driver: Driver) -> None:
    """By state, by producer id, by duration (KIP-994) and by name (KIP-1152)."""
    assert listed(driver, state_filters=["Ongoing"]) == ["open"]
    assert listed(driver, producer_id_filters=[1000]) == ["empty"]
    assert listed(driver, state_filters=["Ongoing"], duration_filter=99) == ["open"]
    assert listed(driver, state_filters=["Ongoing"], duration_filter=100) == []
    assert listed(driver, transactional_id_pattern="o.*") == ["open"]
    assert listed(driver, transactional_id_pattern="o") == [], "the whole name has to match"


def test_unknown_states_are_named_and_match_nothing(driver: Driver) -> None:
    """A newer tool may know states that this broker does not."""
    request = ListTransactionsRequest(state_filters=["Hanging"], producer_id_filters=[])
    response = list_transactions(driver.shard.transactions.values(), request, driver.now)
    assert response.unknown_state_filters == ["Hanging"]
    assert response.transaction_states == []


def test_a_broken_pattern_is_refused(driver: Driver) -> None:
    """As INVALID_REGULAR_EXPRESSION, not as a broken broker."""
    request = ListTransactionsRequest(
        state_filters=[], producer_id_filters=[], transactional_id_pattern="(", duration_filter=-1
    )
    response = list_transactions(driver.shard.transactions.values(), request, driver.now)
    assert response.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
