"""The way of a consumer to its first record, step by step, without a change to the group."""

from kelpie.client.probe.probe import Probe, ProbeTarget
from kelpie.client.probe.report import ChapterStatus, PartitionStart, ProbeChapter, ProbeReport

__all__ = ["ChapterStatus", "PartitionStart", "Probe", "ProbeChapter", "ProbeReport", "ProbeTarget"]
