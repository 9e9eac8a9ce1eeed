"""Records situations anew: `python -m tests.doctor.matrix.record [SITUATION …]`; without names, all of them.

Each takes a minute or two. What the doctor says wrongly is printed, and recorded all the same.
"""

import sys
import tempfile
import traceback
from pathlib import Path

from kelpie.real.cluster import RealCluster
from tests.doctor.matrix.recording import file_of, write
from tests.doctor.matrix.situations import SITUATIONS
from tests.doctor.matrix.watching import loud, watch, wrong
from tests.doctor.matrix.world import BROKERS, CONFIG, VERSION, World


def record(name: str) -> None:
    situation = SITUATIONS[name]
    with (
        RealCluster(VERSION, brokers=BROKERS, config=CONFIG) as cluster,
        tempfile.TemporaryDirectory() as folder,
    ):
        moments = watch(World(cluster), situation, Path(folder))
    write(file_of(name), moments)
    print(f"{name}: {len(moments)} moments, {file_of(name).stat().st_size:,} bytes")
    print("\n".join(dict.fromkeys(wrong(situation, moments))))
    print(f"at the end: {loud(moments[-1].findings)}", flush=True)


if __name__ == "__main__":
    for chosen in sys.argv[1:] or SITUATIONS:
        try:
            record(chosen)
        except Exception:  # The others can be recorded all the same.
            traceback.print_exc()
