"""What a fleet costs: fleets of several sizes with known truth through the whole pipeline, and a model of it.

The model is fitted to the small sizes and predicts the largest one, which is then measured: the error stands
beside it. Every injected fault must be found, in each size, and no other. `docs/fleet.md` gets the figures.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.fleet_evidence import Fleet
from bench.fleet_groups import DAY_MS, ROUND_MS
from bench.measure import Ratio, Report
from bench.pipeline_fleet import Measured, measure

SMALL = (
    Fleet(clusters=1, groups=60, partitions=4, days=0.021, faults=2),
    Fleet(clusters=1, groups=300, partitions=4, days=0.021, faults=5),
    Fleet(clusters=1, groups=60, partitions=4, days=0.084, faults=2),
    Fleet(clusters=2, groups=60, partitions=4, days=0.021, faults=2),
)
LARGE = Fleet(clusters=3, groups=300, partitions=4, days=0.03, faults=5)
WANTED = Fleet(clusters=20, groups=1000, partitions=4, days=7, faults=5)
"""What platform teams have; this machine holds a part of it."""
PAGE = Path(__file__).parent.parent / "docs" / "fleet.md"
_BEGIN, _END = "<!-- figures -->", "<!-- /figures -->"
_COMMITS_A_DAY = DAY_MS // ROUND_MS
_TERMS = ("a run", "each cluster", "each group", "a million commits")


@dataclass(frozen=True, slots=True)
class Model:
    """Costs of one run: of the run itself, of each cluster, of each group, of a million commits."""

    costs: tuple[float, ...]

    @classmethod
    def fitted(cls, fleets: Sequence[Fleet], measured: Sequence[Measured], what: str) -> "Model":
        """By least squares. No cost is below 0: a term that would be is left out."""
        terms = np.array([_terms(each, it) for each, it in zip(fleets, measured, strict=True)])
        values = np.array([getattr(it, what) for it in measured])
        used = list(range(len(_TERMS)))
        while True:
            solved = np.linalg.lstsq(terms[:, used], values, rcond=None)[0]
            if (solved >= 0).all():
                break
            used.remove(used[int(solved.argmin())])
        costs = np.zeros(len(_TERMS))
        costs[used] = solved
        return cls(tuple(map(float, costs)))

    def predict(self, fleet: Fleet, measured: Measured) -> float:
        return float(np.dot(self.costs, _terms(fleet, measured)))


def _terms(fleet: Fleet, measured: Measured) -> tuple[float, ...]:
    return 1.0, fleet.clusters, fleet.clusters * fleet.groups, measured.records / 1e6


def run() -> Report:
    small = [measure(fleet) for fleet in SMALL]
    cpu, size = (Model.fitted(SMALL, small, what) for what in ("cpu_s", "mb"))
    large = measure(LARGE)
    rows = [_row(fleet, it, cpu, size) for fleet, it in zip((*SMALL, LARGE), (*small, large), strict=True)]
    rows[-1][0] += " (predicted, not fitted)"
    found = sum(it.injected for it in (*small, large))
    about = (
        "Fleets with injected faults through the whole pipeline, each from nothing to findings in one run: "
        f"all {found} faults found, no other. CPU seconds of Java and Python together; the model is fitted "
        "to all sizes but the last one. docs/fleet.md says what follows for large fleets."
    )
    header = ("what", "commits", "CPU s", "by the model", "tables, MB", "by the model", "peak memory, MiB")
    ratios = [
        Ratio("fleet-cpu-model", cpu.predict(LARGE, large) / large.cpu_s, "measured"),
        Ratio("fleet-size-model", size.predict(LARGE, large) / large.mb, "measured"),
        Ratio("fleet-faults", 1.0, "injected"),
    ]
    write_page(figures(cpu, size, large))
    return Report("A fleet", about, header, rows, ratios)


def _row(fleet: Fleet, measured: Measured, cpu: Model, size: Model) -> list[str]:
    return [
        told(fleet),
        f"{measured.records:,}",
        f"{measured.cpu_s:.0f}",
        f"{cpu.predict(fleet, measured):.0f}",
        f"{measured.mb:.1f}",
        f"{size.predict(fleet, measured):.1f}",
        f"{measured.peak_mib:.0f}",
    ]


def told(fleet: Fleet) -> str:
    many = f"{fleet.clusters} clusters" if fleet.clusters > 1 else "1 cluster"
    return f"{many} × {fleet.groups} groups × {fleet.days * 24:.1f} h"


def figures(cpu: Model, size: Model, large: Measured) -> str:
    """For the page, in Markdown."""
    lines = ["| what | CPU s | MB in tables |", "|---|---|---|"]
    lines += [
        f"| {term} | {own:.3g} | {its:.3g} |"
        for term, own, its in zip(_TERMS, cpu.costs, size.costs, strict=True)
    ]
    error_cpu = cpu.predict(LARGE, large) / large.cpu_s - 1
    error_mb = size.predict(LARGE, large) / large.mb - 1
    ran = large.records / (WANTED.clusters * WANTED.groups * WANTED.partitions * WANTED.days * _COMMITS_A_DAY)
    lines += [
        "",
        f"Fitted to {len(SMALL)} small fleets, the model was asked about a larger one, {told(LARGE)} "
        f"({large.records:,} commits): {cpu.predict(LARGE, large):.0f} CPU s and "
        f"{size.predict(LARGE, large):.0f} MB. Measured were {large.cpu_s:.0f} CPU s and {large.mb:.0f} MB. "
        f"The error is {error_cpu:+.0%} and {error_mb:+.0%}. That fleet is {ran:.2%} of the commits of "
        f"{told(WANTED).replace('168.0 h', '7 days')}.",
        "",
        "| of a group that commits 4 partitions every 5 seconds | CPU s | MB in tables |",
        "|---|---|---|",
    ]
    a_day = 4 * _COMMITS_A_DAY / 1e6
    group = [model.costs[2] + a_day * model.costs[3] for model in (cpu, size)]
    lines.append(f"| a day, taken in by one run | {group[0]:.2f} | {group[1]:.2f} |")
    cores, gigabytes = 100_000 * group[0] / 86_400, 100_000 * group[1] / 1000
    lines += [
        "",
        f"By that, 100,000 such groups ({100_000 * a_day / 86_400 * 1e6:,.0f} commits each second) need "
        f"{cores:.0f} cores all day, and {gigabytes:,.0f} GB of tables for each day that is kept.",
    ]
    return "\n".join(lines)


def write_page(text: str) -> None:
    page = PAGE.read_text()
    fresh = f"{_BEGIN}\n{text}\n{_END}"
    PAGE.write_text(re.sub(f"{_BEGIN}.*{_END}", lambda _: fresh, page, flags=re.DOTALL))
