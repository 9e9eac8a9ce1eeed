"""A consumer's way to its first record, walked without touching the group, and told step by step."""

from kelpie.client.journey.probe.journey import Chapter, Journey, Stand, Verdict
from kelpie.client.journey.probe.probing import Probe, Wish

__all__ = ["Chapter", "Journey", "Probe", "Stand", "Verdict", "Wish"]
