"""Examine a cluster as `kelpie doctor` does, from a program, a page or a test.

    import asyncio
    from kelpie.client.settings import Settings
    from kelpie.examination import Examination

    diagnosis, saw_anything, cases = asyncio.run(Examination(Settings.of("kafka-1:9092")).examine())
    for finding in diagnosis.findings:
        print(finding.code, finding.group, finding.summary)

An examination surveys the cluster, recalls earlier surveys from the store, judges them together with files
of evidence, and remembers the survey. `changes` compares two diagnoses.
"""

from kelpie.examination.examination import Changes, Examination, Examined, changes

__all__ = ["Changes", "Examination", "Examined", "changes"]
