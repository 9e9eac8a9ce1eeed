"""Two of three brokers die: some groups lose their coordinator, and others go on."""

from demo.shop import Shop

_DYING = (2, 3)


def stricken(shop: Shop, groups: list[str]) -> list[str]:
    """Those whose partition of the offsets topic has all its copies on brokers that die."""
    return [group for group in groups if set(shop.home_of(group)["replicas"]) <= set(_DYING)]


def cause(shop: Shop, groups: list[str]) -> str:
    hit = stricken(shop, groups)
    for node in _DYING:
        shop.cluster.kill(node)
    return (
        f"Coordinator outage: brokers {' and '.join(map(str, _DYING))} are dead. {len(hit)} of {len(groups)} "
        "groups live on partitions of the offsets topic that have no other copy."
    )
