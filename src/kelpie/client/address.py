"""Where a broker listens: "kafka-1:9092", "[2001:db8::1]:9092", and lists as in bootstrap.servers."""

from typing import NamedTuple

from kelpie.client.client_errors import BadSettings


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Reads "host:port". As in Kafka, a protocol in front ("SASL_SSL://") is taken and not used."""
        written = text.strip()
        _, scheme, rest = written.rpartition("://")
        host, colon, port = rest.rpartition(":")
        if scheme and not rest:
            raise _wrong(text, "there is nothing behind the protocol")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        elif ":" in host or rest.startswith("["):
            raise _wrong(text, "an IPv6 address stands in brackets: [2001:db8::1]:9092")
        if not colon:
            raise _wrong(text, f"the port is missing; did you mean {rest or 'host'}:9092?")
        if not host:
            raise _wrong(text, "the host is missing")
        if any(sign.isspace() or sign in "/,;@" for sign in host):
            raise _wrong(text, f"{host!r} is no name of a host")
        if not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65_536:
            raise _wrong(text, f"{port!r} is no port; ports go from 1 to 65535")
        return cls(host, int(port))

    @classmethod
    def parse_list(cls, text: str) -> tuple["Address", ...]:
        """Reads a list as in bootstrap.servers, without repeats, in order."""
        parts = [part for part in text.split(",") if part.strip()]
        if not parts:
            raise BadSettings("No broker is named. Write host:port, and several with commas between them.")
        return tuple(dict.fromkeys(map(cls.parse, parts)))


def _wrong(text: str, why: str) -> BadSettings:
    return BadSettings(f"{text.strip()!r} is no address of a broker: {why}{'' if why.endswith('?') else '.'}")
