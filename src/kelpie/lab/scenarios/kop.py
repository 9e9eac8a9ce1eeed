"""What brokers with KoP would export, and keep in ZooKeeper, while a scenario runs.

The scenario says on which broker a consumer asked for its coordinator, which connection closed, and on which
broker it reads now. The plan `connection` (KoP as it is) makes the mapping and the labels of that. What was
read is what the consumer has read. `record` writes what an operator would have: a scrape of every broker, and
a listing of the mapping tree.
"""

from datetime import UTC, datetime
from itertools import count

from kelpie.attribution.addresses import KOP_ROOT, ClientAddress
from kelpie.attribution.connection import ConnectionPlan
from kelpie.attribution.counters import Amount, Counters
from kelpie.attribution.requests import Request
from kelpie.attribution.store import MemoryStore
from kelpie.lab.cluster import Cluster
from kelpie.lab.scenarios.application import Application
from kelpie.lab.scenarios.stage import Stage
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant

HOST = "127.0.0.1"
_BYTES_A_MESSAGE = 70
_FOLDER = "kop"
_NAMES = (("MESSAGE_OUT", "messages"), ("BYTES_OUT", "bytes"), ("ENTRIES_OUT", "entries"))


class KopRecorder:
    """The mapping and the counters of all brokers of a cluster."""

    def __init__(self, stage: Stage, cluster: Cluster) -> None:
        self.store = MemoryStore()
        self._stage = stage
        self._plans = {node: ConnectionPlan(node, 0, Counters()) for node in cluster.node_ids}
        self._lives = count(1)
        self._finders: set[tuple[Application, int]] = set()
        """Open connections on which a coordinator was asked for, by application and broker."""
        self._positions: dict[tuple[Application, TopicPartition], int] = {}
        self._recordings = count(1)

    def finds_coordinator(self, app: Application, broker: int) -> None:
        """FindCoordinator comes to this broker; the connection stays open, and idle."""
        self._finders.add((app, broker))
        plan, client = self._plans[broker], ClientAddress(HOST, app.name)
        self._send(plan, plan.coordinator_found((app, "find"), client, app.group, self._now()))

    def closes_finder(self, app: Application, broker: int) -> None:
        """The connection on which it asked for the coordinator closes."""
        self._finders.remove((app, broker))
        plan = self._plans[broker]
        self._send(plan, plan.connection_closed((app, "find"), self._now()))

    def restarts(self, broker: int) -> None:
        """All connections of the broker close, and its counters begin at zero."""
        for app, node in list(self._finders):
            if node == broker:
                self.closes_finder(app, broker)
        self.is_killed(broker)

    def is_killed(self, broker: int) -> None:
        """With kill -9: nothing closes, so no node is removed. It is started again."""
        self._finders = {finder for finder in self._finders if finder[1] != broker}
        self._plans[broker] = ConnectionPlan(broker, next(self._lives), Counters())

    async def reads(self, app: Application, broker: int, offset: int) -> None:
        """It reads all its partitions up to this offset, from this broker."""
        plan, client = self._plans[broker], ClientAddress(HOST, app.name)
        for partition in app.assignment:
            position = await app.until_at(partition, offset)
            messages = position - self._positions.get((app, partition), 0)
            self._positions[app, partition] = position
            if messages > 0:
                amount = Amount(messages, messages * _BYTES_A_MESSAGE, 1)
                requests = plan.fetched((app, "fetch"), client, partition, amount, self._now())
                self._send(plan, requests)

    def record(self) -> None:
        """Scrapes of all brokers, and a listing of the tree, into files."""
        folder = self._stage.logs / _FOLDER
        folder.mkdir(exist_ok=True)
        number = next(self._recordings)
        for node, plan in self._plans.items():
            text = _exposition(plan.counters, self._now())
            (folder / f"{number:02}-broker-{node}.prom").write_text(text, "utf-8")
        (folder / f"{number:02}-mappings.zk.txt").write_text(self._listing(), "utf-8")

    def group_of(self, client_id: str) -> str | None:
        """The group that the node of this client names."""
        value = self.store.listing(KOP_ROOT).get(f"{KOP_ROOT}/{HOST}-{client_id}")
        return None if value is None else value.decode()

    def _listing(self) -> str:
        at = datetime.fromtimestamp(self._now() / 1000, UTC).isoformat(timespec="milliseconds")
        lines = [f"# {at}", f"{KOP_ROOT}\tvalue=b''\tversion=0"]
        for path, value in sorted(self.store.listing(KOP_ROOT).items()):
            lines.append(f"{path}\tvalue={value!r}\tversion={self.store.version(path)}")
        return "\n".join(lines) + "\n"

    def _send(self, plan: ConnectionPlan, requests: list[Request]) -> None:
        for request in requests:
            self._send(plan, plan.answered(request, self.store.carry_out(request), self._now()))

    def _now(self) -> int:
        return self._stage.environment.now_ms()


def _exposition(counters: Counters, now: Instant) -> str:
    """As KoP writes it: TYPE lines again and again, names of groups as they are. Samples have their time."""
    lines = ["# TYPE kop_server_ALIVE_CHANNEL_COUNT gauge", f"kop_server_ALIVE_CHANNEL_COUNT 1 {now}"]
    for series, amount in sorted(counters.amounts.items()):
        labels = f'group="{series.group}",partition="{series.partition}",topic="{series.topic}"'
        for name, field in _NAMES:
            lines.append(f"# TYPE kop_server_{name} counter")
            lines.append(f'kop_server_{name}{{cluster="lab",{labels}}} {getattr(amount, field)} {now}')
    return "\n".join(lines) + "\n"
