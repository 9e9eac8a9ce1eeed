"""All plans by name, in the order in which each mends what the one before it loses."""

from kelpie.attribution.connection import ConnectionPlan
from kelpie.attribution.coordinator import CoordinatorPlan
from kelpie.attribution.incarnation import IncarnationPlan
from kelpie.attribution.join import JoinPlan
from kelpie.attribution.plan import Plan
from kelpie.attribution.reconciled import ReconciledPlan

PLANS: dict[str, type[Plan]] = {
    plan.name: plan for plan in (ConnectionPlan, JoinPlan, CoordinatorPlan, ReconciledPlan, IncarnationPlan)
}
