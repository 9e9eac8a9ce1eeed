"""What brokers with KoP count of their own traffic, by topic, partition and group.

A Fetch names no group. KoP looks the group up by the host and the client id of the connection, and labels its
counters with it. Where the lookup has no answer, the label is empty.
"""

from typing import NamedTuple

from kelpie.model.time import Instant

MESSAGES, BYTES, ENTRIES = "MESSAGE_OUT", "BYTES_OUT", "ENTRIES_OUT"
COUNTERS = (MESSAGES, BYTES, ENTRIES)
"""Counters of what consumers have fetched, without KoP's prefix `kop_server_`."""


class Scrape(NamedTuple):
    """One answer of a broker's metrics endpoint that has metrics of KoP in it.

    A scrape without any traffic is a row, too: a series that the next scrape has is new then.
    """

    broker: str = ""
    """As far as it is known: "broker 2", or the instance that Prometheus named. Empty: unknown."""
    at: Instant | None = None
    source: str = ""


class TrafficSeries(NamedTuple):
    """One counter of one topic, partition and group, as one scrape has it."""

    scrape: str
    """The source of its scrape."""
    topic: str
    partition: int
    group: str | None
    """The label. None: the series has no such label; "" and None mean that the group is not known."""
    counter: str
    """One of `COUNTERS`."""
    value: int
    broker: str = ""
    at: Instant | None = None
    source: str = ""


class MalformedSeries(NamedTuple):
    """Lines of a scrape that are not in the text format: KoP does not escape the names in its labels."""

    scrape: str
    text: str
    """The lines as they stand. A name with an end of line in it makes two of one series."""
    group: str | None = None
    """The group in it, as far as it can be read."""
    broker: str = ""
    at: Instant | None = None
    source: str = ""
