"""The broker that told a consumer its coordinator restarts: what the consumer reads is counted to no group.

A Fetch names no group. Brokers that count by group, as those with KoP do, remember the group of a client from
its FindCoordinator, until that connection closes: docs/attribution.md.
"""

from contextlib import ExitStack

from demo.clients import Reader
from demo.shop import Shop, wait_until

_TOLD_BY = 1
_RECORDS = 10


def cause(shop: Shop, reader: Reader) -> str:
    with ExitStack() as elsewhere:
        for node in (2, 3):
            elsewhere.enter_context(shop.cluster.disconnect(api="FindCoordinator", node=node))
        reader.start()
        wait_until(f"{reader.group} reads", lambda: reader.read >= _RECORDS)
    _scrape(shop, "1-before")
    shop.cluster.restart(_TOLD_BY)
    wait_until("the node of the client is gone", lambda: not _is_mapped(shop, reader.client_id))
    before = reader.read
    wait_until(f"{reader.group} reads on", lambda: reader.read >= before + _RECORDS)
    _scrape(shop, "2-after")
    return (
        f"Lost label: broker {_TOLD_BY}, which had told {reader.group} its coordinator, restarted. The group "
        f"reads on, {reader.read - before} records since, and the brokers count them to nobody."
    )


def _is_mapped(shop: Shop, client_id: str) -> bool:
    return any(path.endswith(client_id) for path in shop.cluster.mappings())


def _scrape(shop: Shop, name: str) -> None:
    """What an operator has: the metrics of every broker, and a listing of the mapping tree."""
    folder = shop.evidence / "kop"
    folder.mkdir(exist_ok=True)
    for node in shop.cluster.node_ids:
        scrape = shop.cluster.scrape(node, dated=True)
        (folder / f"{name}-broker-{node}.prom").write_text(scrape, encoding="utf-8")
    attribution = shop.cluster.twin.brokers.attribution
    listing = shop.cluster.call(lambda: attribution.listing(dated=True))
    (folder / f"{name}-mappings.zk.txt").write_text(listing, encoding="utf-8")
