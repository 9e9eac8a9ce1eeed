"""`kelpie pipeline run --json` and `kelpie pipeline stream --once --json`: what a run did."""

from typing import TYPE_CHECKING, Literal

from kelpie.documents.declaring import TypedDict, document
from kelpie.places import Place

if TYPE_CHECKING:
    from kelpie.pipeline.summary import Summary


@document
class UnusableFile(TypedDict):
    file: str
    reason: str


@document
class PipelineRunDocument(TypedDict):
    """What a run of the pipeline did."""

    version: Literal[1]
    cluster: str
    into: str
    """The folder of the tables."""
    files: int
    """All below the paths."""
    new_files: int
    bytes: int
    """Of the new files."""
    recognised: dict[str, int]
    """New files by kind."""
    rows_added: dict[str, int]
    """By bronze table."""
    tables: dict[str, int]
    """Rows by table, now."""
    findings: dict[str, int]
    """By severity."""
    unusable: list[UnusableFile]
    """Files that could not be used, or not wholly."""
    notes: list[str]
    seconds: dict[str, float]
    """By stage."""


def pipeline_run_document(summary: "Summary", into: Place) -> PipelineRunDocument:
    return {
        "version": 1,
        "cluster": summary.cluster,
        "into": str(into),
        "files": summary.files,
        "new_files": summary.new_files,
        "bytes": summary.bytes,
        "recognised": dict(summary.by_kind),
        "rows_added": dict(summary.written),
        "tables": dict(summary.tables),
        "findings": dict(summary.findings),
        "unusable": [{"file": name, "reason": reason} for name, reason in summary.unusable],
        "notes": list(summary.notes),
        "seconds": {stage: round(seconds, 3) for stage, seconds in summary.seconds.items()},
    }
