"""A consumer for asyncio: the machine of `kelpie.consumer` on real connections."""

from kelpie.client.consumer.consumer import Change, Consumer, ConsumerError

__all__ = ["Change", "Consumer", "ConsumerError"]
