"""What has changed from one diagnosis of a cluster to the next."""

from typing import NamedTuple

from kelpie.doctor.diagnosis import Diagnosis
from kelpie.doctor.finding import Finding


class Changes(NamedTuple):
    new: tuple[Finding, ...]
    """Findings that the diagnosis before did not have."""
    gone: tuple[Finding, ...]
    """Findings that only the diagnosis before had."""


def changes(before: Diagnosis, after: Diagnosis) -> Changes:
    """Findings of the same code, group and cause are the same finding, whatever their texts say."""
    old = {_identity(finding): finding for finding in before.findings}
    new = {_identity(finding): finding for finding in after.findings}
    return Changes(
        tuple(finding for identity, finding in new.items() if identity not in old),
        tuple(finding for identity, finding in old.items() if identity not in new),
    )


def _identity(finding: Finding) -> tuple[str, str | None, str]:
    return finding.code, finding.group, finding.cause
