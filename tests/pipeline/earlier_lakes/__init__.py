"""Folders of tables as earlier code wrote them, compressed: whoever has such a folder goes on with it.

Each holds four clusters: `checkout`, `orders`, `legacy` and `kop`, made of the recordings of Kafka
4.3.1, 0.9.0.1, 0.8.2.2 and of KoP. When columns or tables change, a new one is added; the earlier ones stay.
"""

import tarfile
from pathlib import Path

_HERE = Path(__file__).parent

NAMES = tuple(sorted(archive.name.removesuffix(".tar.xz") for archive in _HERE.glob("*.tar.xz")))
NEWEST = NAMES[-1]
RECORDINGS = {
    "checkout": "kafka-4.3.1-coordinator-outage",
    "orders": "kafka-0.9.0.1-coordinator-outage",
    "legacy": "kafka-0.8.2.2-rebalance-failure",
    "kop": "kop-3.2-scrapes",
}


def unpack(name: str, folder: Path) -> Path:
    """The tables, in a folder that the caller may write to."""
    with tarfile.open(_HERE / f"{name}.tar.xz") as archive:
        # As an attribute, for `filter=` came only with Python 3.11.4.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(folder)
    return folder / "lake"
