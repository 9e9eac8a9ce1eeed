"""How a client is named in the mapping tree: by host and client id.

KoP's node is `/client_group_id/<host>-<clientId>`, and its value is the name of the group. Three properties
of that name lose information:

- The host is the text of the remote address before its first ":". Of an IPv6 address, that is the first of
  eight groups ("/2001:db8:…" gives "2001", or "[2001" on Java 14 and newer). So IPv6 clients of one network
  share nodes.
- A "/" in a client id makes nested nodes. The nodes above the last one have an empty value: they are no
  mappings.
- ZooKeeper refuses some paths: control characters, emoji, empty parts ("a//b"), "." and ".." as a part. Such
  a client has no node.

The tree of the plan `incarnation` escapes names instead: every address has a node, and no two share one.
"""

import re
from typing import NamedTuple
from urllib.parse import quote, unquote

KOP_ROOT = "/client_group_id"
"""KoP's default of `groupIdZooKeeperPath`."""
MEMBERS_ROOT = "/client_group_members"
"""The tree of the plan `incarnation`."""

_IPV4 = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
_CUT_IPV6 = re.compile(r"\[?[0-9A-Fa-f]{0,4}")
_REFUSED = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\U0010ffff]")
"""What ZooKeeper's PathUtils.validatePath refuses. It sees characters above U+FFFF as surrogates."""
_NO_PARTS = frozenset({"", ".", ".."})
_NOT_ESCAPED = " !\"#$&'()*+,:;<=>?@[\\]^`{|}"


class ClientAddress(NamedTuple):
    """A client as a broker sees it: the host of its connection, without port, and the client id it sends."""

    host: str
    client_id: str


def client_address(remote_address: str, client_id: str | None) -> ClientAddress:
    """From an address as brokers write it: "/10.0.0.7", "10.0.0.7:52114", "/[2001:db8::7]:52114"."""
    host = remote_address.removeprefix("/")
    if host.startswith("["):
        host = host[1:].partition("]")[0]
    elif host.count(":") == 1:
        host = host.partition(":")[0]
    return ClientAddress(host, client_id or "")


def node_name(client: ClientAddress) -> str:
    """KoP's name, which may hold "/" and may be refused by ZooKeeper."""
    return f"{client.host.partition(':')[0]}-{client.client_id}"


def described_client(host: str, client_id: str) -> ClientAddress:
    """A member as its coordinator describes it. KoP cuts this same text of the host to name the node."""
    return ClientAddress(host.removeprefix("/"), client_id)


def mapping_path(client: ClientAddress, root: str = KOP_ROOT) -> str | None:
    """KoP's path of the client's node. None if ZooKeeper refuses that path: the client cannot have a node."""
    name = node_name(client)
    return f"{root}/{name}" if is_storable(name) else None


def is_storable(name: str) -> bool:
    """Whether ZooKeeper takes this path below a node."""
    if _REFUSED.search(name):
        return False
    # Most names have one part; a check has 10,000s of names.
    return name not in _NO_PARTS if "/" not in name else _NO_PARTS.isdisjoint(name.split("/"))


def read_node_name(name: str) -> ClientAddress | None:
    """Read back a node's path below the root. None if it does not begin with an address.

    The host is what KoP kept of it: an IPv6 address stays cut. Compare paths, not hosts.
    """
    host, dash, client_id = name.partition("-")
    if not dash or not (_IPV4.fullmatch(host) or _CUT_IPV6.fullmatch(host)):
        return None
    return ClientAddress(host, client_id)


def read_mapping_path(path: str, root: str = KOP_ROOT) -> ClientAddress | None:
    """Read back a path. None if it is not below the root, or names no address."""
    return read_node_name(path[len(root) + 1 :]) if path.startswith(f"{root}/") else None


def node_value(group: str) -> bytes:
    """What KoP's node holds."""
    return group.encode(errors="replace")


def read_node_value(value: bytes) -> str:
    """The group in a node; "" if the node is no mapping."""
    return value.decode(errors="replace")


def address_node(client: ClientAddress) -> str:
    """The node of an address in the tree of `incarnation`: escaped as in a URL, host and client id whole."""
    host = escaped(client.host).replace("-", "%2D")
    return f"{MEMBERS_ROOT}/{host}-{escaped(client.client_id)}"


def read_address_node(path: str) -> ClientAddress:
    """Read back what `address_node` wrote."""
    host, _, client_id = path.removeprefix(f"{MEMBERS_ROOT}/").partition("-")
    return ClientAddress(_unescaped(host), _unescaped(client_id))


def escaped(text: str) -> str:
    """Text as one part of a path. Letters outside ASCII are escaped too, lone surrogates included."""
    return quote(text, safe=_NOT_ESCAPED, errors="surrogatepass")


def _unescaped(text: str) -> str:
    return unquote(text, errors="surrogatepass")
