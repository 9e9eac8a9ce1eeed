"""The release of a broker, by the API versions that it speaks: no API tells the release itself."""

from kelpie.client.versions import BrokerVersions

_METADATA = 3
_FIND_COORDINATOR = 10
_CONSUMER_GROUP_DESCRIBE = 69

_BY_METADATA = {
    12: "3.1",
    11: "2.8",
    10: "2.8",
    9: "2.4",
    8: "2.3",
    7: "2.1",
    6: "2.0",
    5: "1.x",
    4: "0.11",
    3: "0.10.2",
    2: "0.10.1",
    1: "0.10.0",
}


def release_of(versions: BrokerVersions) -> str:
    """The first release that speaks these versions: "2.8"; "4.x" from 4.0 on."""
    if not versions.told:
        return "0.9"
    newest = {key: last for key, (_, last) in versions.ranges.items()}
    metadata = newest.get(_METADATA, 0)
    if metadata >= 13:
        return "4.x"
    lookup = newest.get(_FIND_COORDINATOR, 0)
    if lookup >= 5:
        return "3.9" if lookup >= 6 else "3.8"
    if _CONSUMER_GROUP_DESCRIBE in newest:
        return "3.7"
    if lookup == 4 and metadata < 12:
        return "3.0"
    return _BY_METADATA.get(metadata, "")
