"""An application works on a batch for longer than max.poll.interval.ms: its client leaves the group."""

from demo.clients import Reader
from demo.groups import POLL_INTERVAL_MS
from demo.shop import Shop, wait_until

_PAUSE_S = 2 * POLL_INTERVAL_MS / 1000


def cause(shop: Shop, reader: Reader) -> str:
    reader.work_for(_PAUSE_S)
    shop.cluster.wait_for_group(reader.group, "Empty")
    shop.cluster.wait_for_group(reader.group, "Stable")
    before = reader.read
    wait_until(f"{reader.group} reads again", lambda: reader.read > before)
    return (
        f"Slow poller: {reader.group} worked on a batch for {_PAUSE_S:g} s. It may take "
        f"{POLL_INTERVAL_MS / 1000:g} s (max.poll.interval.ms), so its client left the group, and came back."
    )
