"""What the consumer of Kafka 0.8 writes when it gives up."""

import pytest

from kelpie.observations import EventKind as Kind
from tests.evidence.reading import events_of, told

MEMBER = "orders_app-01-1794780689638-2187e03d"
TRACE = (
    f"kafka.common.ConsumerRebalanceFailedException: {MEMBER} can't rebalance after 4 retries",
    "\tat kafka.consumer.ZookeeperConsumerConnector$ZKRebalancerListener.syncedRebalance(Z.scala:633)",
)


@pytest.mark.parametrize(
    ("message", "form"),
    [
        (f"[{MEMBER}], error during syncedRebalance (kafka.consumer.ZookeeperConsumerConnector)", "watcher"),
        ("Error processing message, stopping consumer:  (kafka.tools.ConsoleConsumer$)", "start-up"),
        ("Error handling event ZkEvent[New session event sent to k.Z@31df] (o.ZkEventThread)", "new session"),
    ],
)
def test_a_rebalance_that_failed_names_its_member_and_the_thread(message: str, form: str) -> None:
    """The thread decides whether anybody hears of it."""
    (event,) = events_of(f"[2026-11-15 22:11:40,090] ERROR {message}", *TRACE)
    assert event.kind is Kind.REBALANCE_FAILED
    assert told(event) == {
        "member": MEMBER,
        "reason": f"{MEMBER} can't rebalance after 4 retries",
        "form": form,
        "retries": "4",
    }


def test_a_try_that_failed_is_no_failure() -> None:
    """It is tried again."""
    failed = (
        "Rebalancing attempt failed. Clearing the cache before the next rebalancing operation is triggered"
    )
    assert events_of(f"[2026-11-15 22:11:40,090] INFO [{MEMBER}], {failed} (kafka.consumer.Z)") == []
