"""Records a course anew: `python -m tests.doctor.slow_faults.record NAME [FILE]`. What is loud is printed, as
it comes and goes.
"""

import sys
import tempfile
from pathlib import Path

from tests.doctor.matrix.recording import write
from tests.doctor.matrix.watching import loud
from tests.doctor.slow_faults.an_hour import AN_HOUR
from tests.doctor.slow_faults.course import Course
from tests.doctor.slow_faults.groups import FAULTS_OF_MINUTES
from tests.doctor.slow_faults.world import World, a_patient_broker

_EVIDENCE = Path(__file__).parents[2] / "evidence"
FILE = _EVIDENCE / "slow-faults-4.3.1.jsonl.xz"
FILE_OF_AN_HOUR = _EVIDENCE / "slow-faults-4.3.1-an-hour.jsonl.xz"
_NAMED = ("KLP212", "KLP318")
"""Printed also as notices."""


def record(course: Course, file: Path) -> None:
    with a_patient_broker() as cluster, tempfile.TemporaryDirectory() as folder:
        moments = World(cluster, course).watched(Path(folder))
    write(file, [*moments[: -1 : course.keeps_every], moments[-1]])
    print(f"{len(moments)} moments, {file.stat().st_size:,} bytes")
    before: object = None
    for moment in moments:
        if (found := loud(moment.findings, _NAMED)) != before:
            print(f"{(moment.now - moments[0].now) / 1000:.0f} s: {found}")
            before = found


if __name__ == "__main__":
    courses = {FAULTS_OF_MINUTES.name: (FAULTS_OF_MINUTES, FILE), AN_HOUR.name: (AN_HOUR, FILE_OF_AN_HOUR)}
    course, file = courses[sys.argv[1]]
    record(course, Path(sys.argv[2]) if sys.argv[2:] else file)
