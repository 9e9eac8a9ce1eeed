"""Many seeded runs of a scenario under a plan, added up."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from kelpie.attribution.plan import Plan
from kelpie.attribution.simulation.cluster import SimulatedCluster
from kelpie.attribution.simulation.leaks import leaked_mappings
from kelpie.attribution.simulation.samples import Tally
from kelpie.attribution.simulation.scenarios import Scenario
from kelpie.simulation.agenda import Chance


@dataclass(slots=True)
class Trials:
    """The runs of one scenario under one plan."""

    plan: str
    scenario: str
    seeds: int = 0
    tally: Tally = field(default_factory=Tally)
    runs_that_lost: int = 0
    runs_with_wrong: int = 0
    runs_with_ambiguous: int = 0
    runs_that_leaked: int = 0

    def add(self, run: Tally) -> None:
        self.seeds += 1
        self.tally.add(run)
        self.runs_that_lost += run.lost > 0
        self.runs_with_wrong += run.wrong > 0
        self.runs_with_ambiguous += run.ambiguous > 0
        self.runs_that_leaked += run.leaked > 0


def run_once(plan: type[Plan], scenario: Scenario, chance: Chance) -> Tally:
    cluster = SimulatedCluster(plan, chance, scenario.failed_share)
    scenario.arrange(cluster)
    cluster.agenda.run(cluster.agenda.now + scenario.seconds * 1_000)
    cluster.rest()
    tally = cluster.samples.tally()
    tally.leaked = len(leaked_mappings(cluster))
    return tally


def run_trials(plan: type[Plan], scenario: Scenario, chances: Iterable[Chance]) -> Trials:
    trials = Trials(plan.name, scenario.name)
    for chance in chances:
        trials.add(run_once(plan, scenario, chance))
    return trials
