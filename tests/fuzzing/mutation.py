"""What all fuzzers share: bytes that are damaged by chance, and runs that can be repeated by their seed.

A run is a function of one `Random`. The same seed always takes the same course, so a failure names its seed,
and `KELPIE_FUZZ_SEED=<seed>` runs that one again. `KELPIE_FUZZ_FIRST=<seed>` begins there: a long
run can be done in slices, and a failure in one does not lose the others.
"""

import os
import resource
from collections.abc import Callable, Sequence
from random import Random

EDGES = (
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"\x00\x00\x00\x00",
    b"\xff\x7f",
    b"\x80" * 6,
)
"""Lengths and numbers at the edge of what fits: of 32 bits, of 16 bits, of varints."""
_FIRST_SEED = 1


def mutated(
    data: bytes,
    chance: Random,
    *,
    edges: Sequence[bytes] = EDGES,
    others: Sequence[bytes] = (),
    most_changes: int = 3,
) -> bytes:
    """The data as a broken peer, a torn disk or an attacker would send it: 1 to `most_changes` changes.

    A bit is flipped, an edge is written over, bytes are left out, inserted or doubled, the rest is cut off.
    With `others`, a piece of another one of them may stand in for a piece of this one.
    """
    out = bytearray(data)
    for _ in range(chance.randint(1, most_changes)):
        at = chance.randrange(len(out)) if out else 0
        match chance.randrange(7 if others else 6):
            case 0:
                out[at : at + 1] = bytes(byte ^ 1 << chance.randrange(8) for byte in out[at : at + 1])
            case 1:
                out[at : at + chance.randint(0, 8)] = chance.choice(edges)
            case 2:
                del out[at : at + chance.randint(1, 8)]
            case 3:
                out[at:at] = chance.randbytes(chance.randint(1, 8))
            case 4:
                out[at:at] = out[at : at + chance.randint(1, 100)] * chance.choice((1, 2, 50))
            case 5:
                del out[at:]
            case _:
                other = chance.choice(others)
                begin = chance.randrange(len(other) + 1)
                out[at : at + chance.randint(0, 100)] = other[begin : begin + chance.randint(1, 1000)]
    return bytes(out)


def runs(variable: str, default: int) -> int:
    """How many runs: the environment's word (`make fuzz` sets it), else the number that `make test` does."""
    return int(os.environ.get(variable, default))


def run_seeds(run: Callable[[Random], None], count: int, *, every: int = 0) -> None:
    """Runs with so many seeds in a row, or with the one of KELPIE_FUZZ_SEED. A failure names its seed.

    `every`: after so many runs, a line says how far it has come.
    """
    only = os.environ.get("KELPIE_FUZZ_SEED")
    first = runs("KELPIE_FUZZ_FIRST", _FIRST_SEED)
    seeds = range(first, first + count) if only is None else range(int(only), int(only) + 1)
    for done, seed in enumerate(seeds, start=1):
        try:
            run(Random(seed))
        except BaseException as error:
            error.add_note(f"seed {seed}: KELPIE_FUZZ_SEED={seed} runs it again")
            raise
        if every and done % every == 0:
            print(f"{done} of {len(seeds)} runs", flush=True)  # noqa: T201


def peak_mib() -> float:
    """The most memory that this process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
