"""Names of clients in the mapping tree, as real KoP writes them and as ZooKeeper takes them."""

import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelpie.attribution.addresses import (
    ClientAddress,
    address_node,
    client_address,
    is_storable,
    mapping_path,
    read_address_node,
    read_mapping_path,
)

RECORDINGS = Path(__file__).parent.parent / "evidence" / "kop-3.2-scrapes.tar.xz"
ANY_TEXT = st.text(st.characters(exclude_categories=()))
"""Surrogates too: a client id is bytes of a peer."""


@pytest.mark.parametrize(
    ("remote_address", "host"),
    [
        ("/10.0.0.7", "10.0.0.7"),
        ("/10.0.0.7:52114", "10.0.0.7"),
        ("10.0.0.7", "10.0.0.7"),
        ("/2001:db8:0:0:0:0:0:7", "2001:db8:0:0:0:0:0:7"),
        ("/[2001:db8::7]:52114", "2001:db8::7"),
        ("::1", "::1"),
    ],
)
def test_hosts_are_read_from_addresses_as_brokers_write_them(remote_address: str, host: str) -> None:
    """DescribeGroups has no port, a connection has one, IPv6 has colons and sometimes brackets."""
    assert client_address(remote_address, "c") == ClientAddress(host, "c")


def test_a_client_without_a_client_id_has_an_empty_one() -> None:
    """The field is nullable; KoP's librdkafka clients send "rdkafka", others nothing."""
    assert mapping_path(client_address("/10.0.0.7", None)) == "/client_group_id/10.0.0.7-"


def test_two_ipv6_hosts_of_one_network_share_a_node_as_in_kop() -> None:
    """KoP cuts at the first colon: the mapping says whatever was written last."""
    first, second = ClientAddress("2001:db8::7", "app"), ClientAddress("2001:db8::8", "app")
    assert mapping_path(first) == mapping_path(second) == "/client_group_id/2001-app"
    assert address_node(first) != address_node(second)


@pytest.mark.parametrize(
    "client_id", ["a\nb", "a//b", "a/", "a/../b", "a/.", "\x7f", "\ud800", "\uffff", "🐕"]
)
def test_client_ids_that_zookeeper_refuses_have_no_node_in_kops_tree(client_id: str) -> None:
    """ZooKeeper's client refuses the path; KoP logs the failure, and the client stays without a label."""
    assert mapping_path(ClientAddress("10.0.0.7", client_id)) is None


@pytest.mark.parametrize(
    "client_id", ["", "a", "a-b", "-", "a/b", "/a", "..", "x..y", 'we"ird', "ü", "日本", " "]
)
def test_other_client_ids_are_read_back_from_kops_node(client_id: str) -> None:
    """The host ends at the first "-": addresses have none, client ids may. ".." follows the host."""
    client = ClientAddress("10.0.0.7", client_id)
    path = mapping_path(client)
    assert path is not None
    assert read_mapping_path(path) == client


@pytest.mark.parametrize("host", ["2001", "[2001", "", "fe80", "10.0.0.7"])
def test_hosts_that_kop_cut_are_read_back_as_they_stand(host: str) -> None:
    """On Java 14 and newer, the text of an IPv6 address begins with a bracket."""
    assert read_mapping_path(f"/client_group_id/{host}-a-1") == ClientAddress(host, "a-1")


@pytest.mark.parametrize("path", ["/client_group_id", "/other/10.0.0.7-a", "/client_group_id/host-1-app",
                                  "/client_group_id/10.0.0.7", "/client_group_idx/10.0.0.7-a"])  # fmt: skip
def test_nodes_that_name_no_address_are_no_mappings(path: str) -> None:
    """Others may keep nodes there too; they are not ours to judge."""
    assert read_mapping_path(path) is None


def test_every_node_that_real_kop_wrote_is_read_back_and_written_the_same() -> None:
    """The recordings hold quotes, non-ASCII, dots and a slash in client ids."""
    with tarfile.open(RECORDINGS) as archive:
        dumps = [archive.extractfile(member) for member in archive if member.name.endswith(".zk.txt")]
        lines = [line.decode() for dump in dumps if dump for line in dump.read().splitlines()]
    paths = {line.split("\t")[0] for line in lines if line.startswith("/client_group_id/")}
    assert len(paths) > 30
    for path in paths:
        client = read_mapping_path(path)
        assert client is not None
        assert mapping_path(client) == path


@given(ANY_TEXT, ANY_TEXT)
def test_every_address_has_a_node_of_its_own_in_our_tree(host: str, client_id: str) -> None:
    """Escaped: whatever a client calls itself, ZooKeeper takes it, and no other client has the same node."""
    client = ClientAddress(host, client_id)
    path = address_node(client)
    assert path.count("/") == 2
    assert is_storable(path[1:])
    assert read_address_node(path) == client
