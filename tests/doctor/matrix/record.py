"""Records situations anew: `python -m tests.doctor.matrix.record RELEASE [SITUATION …]`; without names, all.

Each takes a minute or two. Situations that leave the cluster as it was share one. What the doctor says
wrongly is printed, and recorded all the same.
"""

import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.doctor.matrix.cluster import MatrixCluster
from tests.doctor.matrix.recording import file_of, write
from tests.doctor.matrix.situations import SITUATIONS, Situation
from tests.doctor.matrix.watching import loud, watch, wrong
from tests.doctor.matrix.world import World


def runs(situations: Sequence[Situation]) -> Iterator[list[Situation]]:
    """Those that share a cluster, one after the other."""
    run: list[Situation] = []
    for situation in situations:
        run.append(situation)
        if situation.spoils:
            yield run
            run = []
    if run:
        yield run


def record(release: str, situations: Sequence[Situation]) -> None:
    with MatrixCluster(release) as cluster:
        world = World(cluster)
        with world.alive():
            for situation in situations:
                with tempfile.TemporaryDirectory() as folder:
                    moments = watch(world, situation, Path(folder))
                file = file_of(situation.name, release)
                write(file, moments)
                print(f"{situation.name}: {len(moments)} moments, {file.stat().st_size:,} bytes")
                print("\n".join(dict.fromkeys(wrong(situation, moments, world.kinds))))
                print(f"at the end: {loud(moments[-1].findings)}", flush=True)


if __name__ == "__main__":
    which, *names = sys.argv[1:]
    named = [SITUATIONS[name] for name in names or SITUATIONS]
    for together in runs([situation for situation in named if which in situation.releases]):
        try:
            record(which, together)
        except Exception:  # The others can be recorded all the same.
            traceback.print_exc()
