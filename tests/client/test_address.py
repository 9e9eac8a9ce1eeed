import pytest

from kelpie.client.address import Address
from kelpie.client.client_errors import BadSettings


@pytest.mark.parametrize(
    ("text", "host", "port", "shown"),
    [
        ("kafka-1:9092", "kafka-1", 9092, "kafka-1:9092"),
        (" 10.0.0.1:1 ", "10.0.0.1", 1, "10.0.0.1:1"),
        ("[::1]:9092", "::1", 9092, "[::1]:9092"),
        ("SASL_SSL://broker.example:65535", "broker.example", 65535, "broker.example:65535"),
    ],
)
def test_addresses_are_read_as_people_write_them(text: str, host: str, port: int, shown: str) -> None:
    """They come from command lines and from bootstrap.servers, with whatever is copied along."""
    address = Address.parse(text)
    assert address == (host, port)
    assert str(address) == shown


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("kafka-1", "kafka-1:9092"),
        ("kafka-1:", "no port"),
        ("kafka-1:0", "no port"),
        ("kafka-1:65536", "no port"),
        ("kafka-1:９", "no port"),
        (":9092", "host is missing"),
        ("::1:9092", "brackets"),
        ("[::1:9092", "brackets"),
        ("user@host:9092", "no name of a host"),
        ("http://host:9092/path", "no port"),
    ],
)
def test_what_is_no_address_is_refused_with_its_reason(text: str, complaint: str) -> None:
    """A mistake in the first thing a person types must be told at once, and in full."""
    with pytest.raises(BadSettings, match=complaint) as caught:
        Address.parse(text)
    assert text in caught.value.reason


def test_lists_lose_their_repeats_and_keep_their_order() -> None:
    """An address that is named twice must not be tried twice."""
    assert Address.parse_list("b:2, a:1,,b:2") == (Address("b", 2), Address("a", 1))


def test_an_empty_list_is_refused() -> None:
    """Nothing to connect to is a mistake, not a cluster without brokers."""
    with pytest.raises(BadSettings, match="host:port"):
        Address.parse_list(" , ")
