"""A consumer for asyncio: the machine of `kelpie.consumer` on real connections."""

from kelpie.client.consumer.consumer import Change, Consumer
from kelpie.client.consumer.consumer_errors import ConsumerError

__all__ = ["Change", "Consumer", "ConsumerError"]
