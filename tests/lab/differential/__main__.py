"""`make differential N=5000 SEED=1`: many sequences, or one that was printed before.

python -m tests.lab.differential 5000 --seed 1
python -m tests.lab.differential --script FILE
python -m tests.lab.differential 200 --record
"""

import argparse
import asyncio
import sys
import time
from pathlib import Path

from kelpie.real.cluster import RealCluster
from kelpie.real.cluster_errors import RealError
from tests.lab.differential import recording
from tests.lab.differential.generator import Generator
from tests.lab.differential.running import both, differences
from tests.lab.differential.script import Script, read
from tests.lab.differential.side import REAL_CONFIG


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.differential")
    parser.add_argument("count", type=int, nargs="?", default=1000)
    parser.add_argument("--seed", type=int, default=1, help="of the first sequence")
    parser.add_argument("--script", type=Path, help="play this one instead")
    parser.add_argument("--timed", action="store_true", help="sequences in which members go silent")
    parser.add_argument("--record", action="store_true", help="keep what real Kafka says, for make test")
    parser.add_argument("--most", type=int, default=3, help="stop after so many differences")
    options = parser.parse_args()
    if options.script is not None:
        scripts = [read(options.script.read_text())]
    else:
        generators = [Generator(options.seed + number) for number in range(options.count)]
        scripts = [each.timed_script() if options.timed else each.script() for each in generators]
    config = {name.replace("_", "."): value for name, value in REAL_CONFIG.items()}
    try:
        with RealCluster(config=config) as real:
            return asyncio.run(_run(real.bootstrap_servers, scripts, options.most, record=options.record))
    except RealError as error:
        sys.stderr.write(f"{error}\n")
        return 2


async def _run(address: str, scripts: list[Script], most: int, *, record: bool) -> int:
    async with both(address) as sides:
        began = time.monotonic()
        found = await differences(sides, scripts, most=most)
        count, too_slow = sides.played, sides.too_slow
        took = time.monotonic() - began
        for each in found:
            sys.stdout.write((await sides.shortest(each)).text() + "\n")
        if record and not found:
            recording.write(sides.kept)
    steps = sum(len(script.steps) for script in scripts)
    first, last = scripts[0].seed, scripts[-1].seed
    played = f"{count - too_slow} sequences of seeds {first} to {last}"
    slow = f" ({too_slow} more need a faster machine)" if too_slow else ""
    sys.stdout.write(f"{played}{slow}, {steps} steps, {took:.0f} s: {len(found)} differences\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
