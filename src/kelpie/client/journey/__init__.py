"""A consumer on real connections, and the probe that follows one on its way to the first record."""

from kelpie.client.journey.consumer import Change, Consumer
from kelpie.client.journey.failures import ConsumerProblem

__all__ = ["Change", "Consumer", "ConsumerProblem"]
