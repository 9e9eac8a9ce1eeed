"""The broker that told a consumer its coordinator restarts: what the consumer reads is counted to no group.

A Fetch names no group. Brokers that count by group, as those with KoP do, remember the group of a client from
its FindCoordinator, until that connection closes: docs/attribution.md.
"""

from collections.abc import Callable

from demo.clients import Reader
from demo.shop import CLICKS, Shop, wait_until

_RECORDS = 10
_SERIES = "kop_server_MESSAGE_OUT{"


def cause(shop: Shop, new_reader: Callable[[Callable[[], bool]], Reader]) -> tuple[Reader, str]:
    """The consumer, which reads on, and what happened.

    It asks the broker from which it reads for its coordinator. Had it asked another one, the restart of that
    one would close no connection by which the consumer reads, and the label would stay.
    """
    told_by = shop.leader_of(CLICKS)
    earlier = 0
    with shop.cluster.observe(api="FindCoordinator") as asked:

        def asked_the_leader() -> bool:
            nonlocal earlier
            requests = asked.requests[earlier:]
            earlier += len(requests)
            brokers = {each.node_id for each in requests if each.header.client_id == reader.client_id}
            return brokers == {told_by}

        reader = new_reader(asked_the_leader)
        reader.start()
        wait_until(f"{reader.group} reads", lambda: reader.read >= _RECORDS)
    _scrape(shop, "1-before")
    uncounted = _counted_to_nobody(shop, reader.topic)
    shop.cluster.restart(told_by)
    wait_until("the node of the client is gone", lambda: not _is_mapped(shop, reader.client_id))
    wait_until(
        f"{reader.group} reads on, counted to nobody",
        lambda: _counted_to_nobody(shop, reader.topic) >= uncounted + _RECORDS,
    )
    _scrape(shop, "2-after")
    count = _counted_to_nobody(shop, reader.topic) - uncounted
    return reader, (
        f"Lost label: broker {told_by}, which had told {reader.group} its coordinator, restarted. The group "
        f"reads on, and the brokers have counted {count} records of it to nobody."
    )


def _counted_to_nobody(shop: Shop, topic: str) -> int:
    """Records of a topic that brokers have counted without a group, since they were started."""
    lines = [line for node in shop.cluster.node_ids for line in shop.cluster.scrape(node).splitlines()]
    unlabelled = [line for line in lines if line.startswith(_SERIES) and 'group=""' in line and topic in line]
    return sum(int(float(line.split()[1])) for line in unlabelled)


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
