"""That a person knows about a finding, for a while."""

from dataclasses import dataclass

from kelpie.model.time import Instant


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """`kelpie ack` makes it, `kelpie.acknowledgements` keeps it, the doctor heeds it."""

    group: str | None
    """A name or a pattern ("billing-*"). None: what concerns the cluster as a whole."""
    code: str
    severity: str
    """How bad the finding was then. One that is worse is told as if nobody knew about it."""
    until: Instant
    by: str
    why: str
    at: Instant
    """When it was acknowledged."""
