"""The faults that a test causes in a cluster. A method that causes a fault returns it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar, Unpack

from kelpie.broker.fabric import Fabric
from kelpie.broker.image import OFFSETS_TOPIC
from kelpie.broker.personas import Persona
from kelpie.errors import ErrorCode
from kelpie.lab.brokers import Brokers
from kelpie.lab.driver import log
from kelpie.lab.faults import Action, Circumstance, Fault, Faults, Observation, RequestFault, Stall
from kelpie.lab.lab_errors import LabError
from kelpie.lab.mapping_faults import MappingFault, MappingFilter, MappingRequests
from kelpie.lab.matching import Filter, RequestFaultOptions, RequestFilter
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant

AnyFault = TypeVar("AnyFault", bound=Fault)


class Injection:
    """Causes faults. Filters take shell patterns; a field that is left out matches every request."""

    def __init__(self, brokers: Brokers, faults: Faults, persona: Persona) -> None:
        self._brokers = brokers
        self._persona = persona
        self.faults = faults
        """All faults that were caused, by id."""

    # Brokers.

    async def kill(self, node_id: int) -> Fault:
        """The broker crashes: connections break, and its peers notice when its session ends.

        Lifting the fault starts it again. It strikes once for each connection that broke.
        """
        return await self._put_down(node_id, abruptly=True)

    async def stop(self, node_id: int) -> Fault:
        """The broker shuts down in order: hands over what it leads, answers, and closes. Else as `kill`."""
        return await self._put_down(node_id, abruptly=False)

    async def start(self, node_id: int) -> None:
        """Start a broker that is down: same port, same data."""
        self._brokers.check_known(node_id)
        if self._brokers.fabric.is_alive(node_id):
            raise LabError(f"Broker {node_id} is up already.")
        self._brokers.bring_up(node_id)

    async def restart(self, node_id: int) -> None:
        """Stop a broker in order and start it again."""
        await self.stop(node_id)
        await self.start(node_id)

    def isolate(self, node_id: int) -> Fault:
        """Cut a broker off from controller and peers; clients still reach it. Lifting joins it again."""
        self._brokers.check_known(node_id)
        self._brokers.change(lambda fabric, now: fabric.isolate(node_id, now))
        return self._circumstance(
            f"broker {node_id} isolated", Filter(node=node_id), lambda: self.rejoin(node_id)
        )

    def rejoin(self, node_id: int) -> None:
        self._brokers.check_known(node_id)
        self._brokers.change(lambda fabric, now: fabric.rejoin(node_id, now))

    async def wall_off(self, node_id: int) -> Fault:
        """No client reaches the broker any more, controller and peers do. Lifting opens its port again.

        It strikes once for each connection that broke.
        """
        self._brokers.check_known(node_id)
        if not self._brokers.fabric.is_alive(node_id):
            raise LabError(f"Broker {node_id} is down.")
        cut = await self._brokers.close_port(node_id)
        fault = self._added(Fault(f"broker {node_id} walled off", lambda: self._brokers.open_port(node_id)))
        fault.strike(cut)
        return fault

    def freeze_metadata(self, node_id: int) -> Fault:
        """The broker learns nothing new about the cluster until it is thawed."""
        self._brokers.check_known(node_id)
        self._brokers.change(lambda fabric, _: fabric.freeze_metadata(node_id))
        return self._circumstance(
            f"metadata of broker {node_id} frozen", Filter(node=node_id), lambda: self.thaw_metadata(node_id)
        )

    def thaw_metadata(self, node_id: int) -> None:
        self._brokers.check_known(node_id)
        self._brokers.change(lambda fabric, now: fabric.thaw_metadata(node_id, now))

    def lag(self, node_id: int, topic: str | None = None, partition: int = 0) -> Fault:
        """The broker stops fetching what it follows: all, or one partition. Lifting lets it catch up."""
        self._brokers.check_known(node_id)
        which = None if topic is None else self._brokers.partition(topic, partition)
        self._brokers.change(lambda fabric, _: fabric.lag(node_id, which))
        return self._circumstance(
            f"broker {node_id} does not follow {which or 'anything'}",
            Filter(api="Produce", topic=topic),
            lambda: self._brokers.change(partial(_catch_up, node_id, which)),
        )

    # Partitions.

    def shrink_isr(self, topic: str, partition: int, isr: Sequence[int]) -> Fault:
        """The other replicas fall behind, and so out of the ISR. Lifting lets them catch up."""
        which = self._brokers.partition(topic, partition)
        others = [node for node in self._brokers.replicas(which) if node not in isr]
        if not set(isr) <= set(self._brokers.replicas(which)) or not isr:
            raise LabError(f"{which} has replicas on {self._brokers.replicas(which)}; choose some of them.")
        self._brokers.change(lambda fabric, now: fabric.shrink_isr(which, isr, now))

        def catch_up() -> None:
            for node_id in others:
                self._brokers.change(partial(_catch_up, node_id, which))

        return self._circumstance(f"ISR of {which} is {list(isr)}", Filter(topic=topic), catch_up)

    def make_leaderless(self, topic: str, partition: int) -> Fault:
        """The partition has no leader until one is elected. Lifting elects one, cleanly if possible."""
        which = self._brokers.partition(topic, partition)
        self._brokers.change(lambda fabric, now: fabric.make_leaderless(which, now))
        what = f"{which} has no leader"
        if topic != OFFSETS_TOPIC:
            return self._circumstance(
                what, Filter(topic=topic), lambda: self._brokers.elect_if_leaderless(which)
            )
        # No request names this topic: groups get COORDINATOR_NOT_AVAILABLE.
        fault = self._added(Fault(what, lambda: self._brokers.elect_if_leaderless(which)))
        self.faults.count_errors(ErrorCode.COORDINATOR_NOT_AVAILABLE, fault)
        return fault

    def elect(self, topic: str, partition: int, *, unclean: bool = False) -> None:
        """Elect a leader anew: one in sync, or, uncleanly, any living replica, which may lose records."""
        which = self._brokers.partition(topic, partition)
        self._brokers.change(lambda fabric, now: fabric.elect(which, now, unclean=unclean))

    # Coordinators.

    def slow_load(self, delay_ms: int, partition: int | None = None) -> Fault:
        """Coordinators take this long to load a partition of the offsets topic (one, or each).

        It strikes with each answer that carries the error for a coordinator that loads.
        """
        if delay_ms < 0:
            raise LabError(f"A delay of {delay_ms} ms cannot be.")
        self._brokers.change(lambda fabric, _: fabric.slow_load(delay_ms, partition))
        where = "each partition" if partition is None else f"partition {partition}"
        fault = self._added(
            Fault(
                f"loading {where} of {OFFSETS_TOPIC} takes {delay_ms} ms",
                lambda: self._brokers.change(lambda fabric, _: fabric.slow_load(0, partition)),
            )
        )
        self.faults.count_errors(self._persona.loading, fault)
        return fault

    def lose_offsets(self, group: str) -> Fault:
        """The group's committed offsets are lost. It cannot be undone."""
        self._brokers.change(lambda fabric, now: fabric.lose_offsets(group, now))
        return self._happened(f"offsets of {group} lost")

    def expire_offsets(self, group: str | None = None) -> Fault:
        """Offsets of one group, or of all, expire at once. It cannot be undone."""
        self._brokers.change(lambda fabric, now: fabric.expire_offsets(group, now))
        return self._happened(f"offsets of {group or 'all groups'} expired")

    # Connections and requests.

    def stall(
        self,
        *,
        client: str | None = None,
        group: str | None = None,
        node: int | None = None,
        duration_s: float | None = None,
    ) -> Stall:
        """Read and write nothing on these connections, for a while or until lifted: a garbage collection."""
        if duration_s is not None and duration_s <= 0:
            raise LabError(f"A stall of {duration_s} s cannot be.")
        stall = Stall(
            self._filter({"node": node, "client": client, "group": group}), self._brokers.review_connections
        )
        self._added(stall)
        self._brokers.review_connections()
        if duration_s is not None:
            self._brokers.driver.loop.call_later(duration_s, stall.lift)
        return stall

    def fail(self, error: ErrorCode | int, **options: Unpack[RequestFaultOptions]) -> RequestFault:
        """Answer matching requests with an error; with `after`, the broker does its work all the same."""
        try:
            code = ErrorCode(error)
        except ValueError:
            raise LabError(f"Kafka has no error {error}.") from None
        return self._strike(options, Action("error", code))

    def delay(self, delay_ms: int | None, **options: Unpack[RequestFaultOptions]) -> RequestFault:
        """Hold matching requests (with `after`, their answers) for this time; None: until lifted."""
        if delay_ms is not None and delay_ms < 0:
            raise LabError(f"A delay of {delay_ms} ms cannot be.")
        return self._strike(options, Action("delay", delay_ms=delay_ms))

    def silence(self, **options: Unpack[RequestFaultOptions]) -> RequestFault:
        """Never answer matching requests. Their connections stay mute: answers cannot overtake each other."""
        return self._strike(options, Action("silence"))

    def disconnect(self, **options: Unpack[RequestFaultOptions]) -> RequestFault:
        """Break the connection instead of an answer; with `after`, the work is done and the answer lost."""
        return self._strike(options, Action("disconnect"))

    def observe(self, **requests: Unpack[RequestFilter]) -> Observation:
        """Collect matching requests as they come."""
        return self._added(Observation(self._filter(requests), self.faults.name_of))

    # The mapping store.

    def hold_mappings(self, *, count: int | None = None, **wanted: Unpack[MappingRequests]) -> MappingFault:
        """Matching requests to the mapping store wait until the fault is lifted, and so do later ones."""
        return self._added(MappingFault(self._mapping_filter(wanted), refuses=False, count=count))

    def refuse_mappings(self, *, count: int | None = None, **wanted: Unpack[MappingRequests]) -> MappingFault:
        """The mapping store does not carry matching requests out."""
        return self._added(MappingFault(self._mapping_filter(wanted), refuses=True, count=count))

    def strike(self, wanted: Filter, action: Action, count: int | None = None) -> RequestFault:
        """Any action for any filter; the methods above are shorter."""
        if count is not None and count < 1:
            raise LabError(f"A fault that strikes {count} times is none.")
        return self._added(RequestFault(wanted, action, count, self.faults.name_of))

    # Parts.

    def _strike(self, options: RequestFaultOptions, action: Action) -> RequestFault:
        count, after = options.pop("count", None), options.pop("after", False)
        return self.strike(self._filter(options), replace(action, after=after), count)

    async def _put_down(self, node_id: int, *, abruptly: bool) -> Fault:
        cut = await self._brokers.put_down(node_id, abruptly=abruptly)
        what = f"broker {node_id} {'killed' if abruptly else 'stopped'}"
        fault = self._added(Fault(what, lambda: self._brokers.bring_up(node_id)))
        fault.strike(cut)
        return fault

    def _added(self, fault: AnyFault) -> AnyFault:
        self.faults.add(fault)
        log.info("%s begins", fault)
        return fault

    def _circumstance(self, what: str, met_by: Filter, undo: Callable[[], None] | None) -> Fault:
        return self._added(Circumstance(what, met_by, self.faults.name_of, undo))

    def _happened(self, what: str) -> Fault:
        """A fault that ends at once."""
        fault = self._added(Fault(what))
        fault.strike()
        fault.lift()
        return fault

    def _mapping_filter(self, wanted: MappingRequests) -> MappingFilter:
        self._brokers.attribution  # noqa: B018 - without a mapping store there is nothing to hold.
        if wanted.get("node") is not None:
            self._brokers.check_known(wanted["node"])
        return MappingFilter(**wanted)

    def _filter(self, requests: RequestFilter) -> Filter:
        node = requests.get("node")
        if node is not None:
            self._brokers.check_known(node)
        return Filter(**requests)


def _catch_up(node_id: int, partition: TopicPartition | None, fabric: Fabric, now: Instant) -> None:
    fabric.catch_up(node_id, partition, now)
