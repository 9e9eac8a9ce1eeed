"""Slows down who guesses passwords.

After some failures, the next attempt has to wait: twice as long after each further failure. Failures count
against the address that they come from, and against the name that was tried, so that many addresses do not
help. A person who has logged in from an address before is not kept out there by what others try.

Nothing is checked while an attempt has to wait: it is refused, even with the right password. So the answer
tells nothing, and costs nothing.
"""

import ipaddress
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")

_FREE_OF_ADDRESS, _LONGEST_OF_ADDRESS_S = 5, 300.0
_FREE_OF_NAME, _LONGEST_OF_NAME_S = 10, 30.0
_FORGOTTEN_S = 3600.0
_MOST_KEPT = 10_000


@dataclass(slots=True)
class _Failures:
    count: int
    last_s: float


class Throttle:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._failures: OrderedDict[tuple[str, str], _Failures] = OrderedDict()
        self._welcome: OrderedDict[tuple[str, str], None] = OrderedDict()
        """Names and addresses that belong together."""

    def wait_s(self, name: str, address: str, now_s: float) -> float:
        """How long to wait before the next attempt; 0: none."""
        with self._lock:
            waits = [self._wait(("address", _place(address)), now_s, _FREE_OF_ADDRESS, _LONGEST_OF_ADDRESS_S)]
            if (name, _place(address)) not in self._welcome:
                waits.append(self._wait(("name", name), now_s, _FREE_OF_NAME, _LONGEST_OF_NAME_S))
            return max(waits)

    def failed(self, name: str, address: str, now_s: float) -> None:
        with self._lock:
            for key in (("address", _place(address)), ("name", name)):
                known = self._failures.pop(key, None)
                count = known.count if known is not None and now_s - known.last_s < _FORGOTTEN_S else 0
                _kept(self._failures)[key] = _Failures(count + 1, now_s)

    def succeeded(self, name: str, address: str) -> None:
        """The failures of the name stay: who guesses goes on."""
        with self._lock:
            self._failures.pop(("address", _place(address)), None)
            self._welcome.pop((name, _place(address)), None)
            _kept(self._welcome)[(name, _place(address))] = None

    def __len__(self) -> int:
        return len(self._failures) + len(self._welcome)

    def _wait(self, key: tuple[str, str], now_s: float, free: int, longest_s: float) -> float:
        known = self._failures.get(key)
        if known is None or known.count < free or now_s - known.last_s >= _FORGOTTEN_S:
            return 0.0
        pause = min(longest_s, 2.0 ** min(known.count - free, 20))
        return max(0.0, known.last_s + pause - now_s)


def _kept(some: OrderedDict[K, V]) -> OrderedDict[K, V]:
    """The same, with room for one more."""
    while len(some) >= _MOST_KEPT:
        some.popitem(last=False)
    return some


def _place(address: str) -> str:
    """An address of IPv6 counts as its network: whoever has one has all of them."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is None:
        return str(ipaddress.ip_network((int(parsed) >> 64 << 64, 64)))
    return str(parsed)
