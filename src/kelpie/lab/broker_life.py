"""What a broker of the lab counts from one start to its end, and its session with the mapping store."""

from dataclasses import dataclass, field

from kelpie.broker.traffic import Traffic
from kelpie.lab.latencies import Latencies
from kelpie.lab.mapping_session import MappingSession


@dataclass(slots=True)
class BrokerLife:
    traffic: Traffic
    session: MappingSession
    latencies: Latencies = field(default_factory=Latencies)
    bytes_in: int = 0
    bytes_out: int = 0
