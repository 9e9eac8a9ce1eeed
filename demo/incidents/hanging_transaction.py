"""A transaction whose coordinator has forgotten it: nobody commits or aborts it.

The transaction log has two copies, and one falls behind. The broker with the other one crashes in the middle
of a transaction, and somebody elects the copy that was behind.
"""

from pathlib import Path

from confluent_kafka import Producer

from demo.clients import Reader, logger_of
from demo.shop import PATIENCE_S, PAYMENTS, TRANSACTION_LOG, Shop, wait_until

_COORDINATOR = 3
_RECORDS = 10


def cause(shop: Shop, reader: Reader, logs: Path) -> str:
    cluster = shop.cluster
    cluster.shrink_isr(TRANSACTION_LOG, 0, [_COORDINATOR])
    producer = Producer(
        {"bootstrap.servers": shop.bootstrap, "transactional.id": "checkout-1"},
        logger=logger_of(logs, "checkout-1"),
    )
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    for number in range(_RECORDS):
        producer.produce(PAYMENTS, f"payment {number}", partition=0)
    producer.flush(PATIENCE_S)
    cluster.kill(_COORDINATOR)
    wait_until("the transaction log has no leader", lambda: not shop.has_leaders(TRANSACTION_LOG))
    cluster.elect(TRANSACTION_LOG, 0, unclean=True)
    cluster.start(_COORDINATOR)
    wait_until(f"broker {_COORDINATOR} is in sync again", lambda: shop.is_in_sync(_COORDINATOR))
    return (
        f"Hanging transaction: a producer wrote {_RECORDS} payments in a transaction. Broker {_COORDINATOR} "
        "crashed, a copy of the transaction log that was behind was elected, and the transaction is "
        f"forgotten. {reader.group}, which reads committed records only, has read {reader.read}, and waits."
    )
