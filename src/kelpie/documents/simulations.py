"""`kelpie simulate … --json`: what seeded runs counted."""

from collections.abc import Iterable, Sequence

from kelpie.attribution.simulation.trials import Trials as PlanTrials
from kelpie.documents.declaring import TypedDict, document
from kelpie.model.shares import Share, wilson
from kelpie.zookeeper.advice import Suggestion
from kelpie.zookeeper.simulation.trials import Trials as RebalanceTrials


@document
class ShareData(TypedDict):
    """Runs in which something happened."""

    runs: int
    share: float
    low: float
    """Of the 95 % confidence interval."""
    high: float


@document
class FetchCounts(TypedDict):
    right: int
    lost: int
    wrong: int
    ambiguous: int
    uncounted: int


@document
class RunShares(TypedDict):
    lost: ShareData
    wrong: ShareData
    ambiguous: ShareData
    leaked: ShareData


@document
class PlanTrialsData(TypedDict):
    scenario: str
    plan: str
    seeds: int
    """Runs."""
    fetches: FetchCounts
    leaked_mappings: int
    runs: RunShares


@document
class PlanTrialsDocument(TypedDict):
    """Plans that keep the group of every fetch, compared."""

    trials: list[PlanTrialsData]


@document
class UnreadTime(TypedDict):
    """From the event until every partition was read again."""

    median: int | None
    """Milliseconds. null: not before somebody starts members."""
    p95: int | None
    never: int
    """Runs in which it never was."""


@document
class RebalanceTrialsData(TypedDict):
    event: str
    mode: str
    members: int
    threads: int
    partitions: int
    topics: int
    retries: int
    backoff_ms: int
    session_timeout_ms: int
    runs: int
    failed: ShareData
    """Runs in which a rebalance failed."""
    failed_members_per_run: float
    idle_members_per_run: float
    unread_ms: UnreadTime


@document
class RebalanceTrialsDocument(TypedDict):
    """Groups of Kafka 0.8's consumers: how often a rebalance fails."""

    trials: list[RebalanceTrialsData]


@document
class SuggestionData(TypedDict):
    name: str
    changes: list[str]
    why: str
    trials: list[RebalanceTrialsData]


@document
class AdviceDocument(TypedDict):
    """With --advise: the settings as they are, and what others would do."""

    outlasts_a_dead_session: bool
    as_it_is: list[RebalanceTrialsData]
    suggestions: list[SuggestionData]


RebalancesDocument = RebalanceTrialsDocument | AdviceDocument


def plan_trials_document(results: Iterable[PlanTrials]) -> PlanTrialsDocument:
    return {"trials": [_plan_trials(trials) for trials in results]}


def rebalance_trials_document(results: Iterable[RebalanceTrials]) -> RebalanceTrialsDocument:
    return {"trials": [_rebalance_trials(trials) for trials in results]}


def advice_document(
    outlasts: bool,
    as_it_is: Iterable[RebalanceTrials],
    suggested: Sequence[tuple[Suggestion, Iterable[RebalanceTrials]]],
) -> AdviceDocument:
    return {
        "outlasts_a_dead_session": outlasts,
        "as_it_is": [_rebalance_trials(trials) for trials in as_it_is],
        "suggestions": [
            {
                "name": suggestion.name,
                "changes": list(suggestion.changes),
                "why": suggestion.why,
                "trials": [_rebalance_trials(trials) for trials in results],
            }
            for suggestion, results in suggested
        ],
    }


def _plan_trials(trials: PlanTrials) -> PlanTrialsData:
    tally = trials.tally

    def of_runs(hits: int) -> ShareData:
        return _share(hits, wilson(hits, trials.seeds))

    return {
        "scenario": trials.scenario,
        "plan": trials.plan,
        "seeds": trials.seeds,
        "fetches": {
            "right": tally.right,
            "lost": tally.lost,
            "wrong": tally.wrong,
            "ambiguous": tally.ambiguous,
            "uncounted": tally.uncounted,
        },
        "leaked_mappings": tally.leaked,
        "runs": {
            "lost": of_runs(trials.runs_that_lost),
            "wrong": of_runs(trials.runs_with_wrong),
            "ambiguous": of_runs(trials.runs_with_ambiguous),
            "leaked": of_runs(trials.runs_that_leaked),
        },
    }


def _rebalance_trials(trials: RebalanceTrials) -> RebalanceTrialsData:
    settings = trials.settings
    return {
        "event": trials.event,
        "mode": settings.behaviour.value,
        "members": settings.members,
        "threads": settings.threads,
        "partitions": settings.partitions,
        "topics": settings.topics,
        "retries": settings.retries,
        "backoff_ms": settings.backoff_ms,
        "session_timeout_ms": settings.session_timeout_ms,
        "runs": trials.runs,
        "failed": _share(trials.runs_that_failed, trials.failed),
        "failed_members_per_run": trials.failed_members / trials.runs,
        "idle_members_per_run": trials.idle_members / trials.runs,
        "unread_ms": {
            "median": trials.unread_quantile(0.5),
            "p95": trials.unread_quantile(0.95),
            "never": trials.unrecovered,
        },
    }


def _share(hits: int, share: Share) -> ShareData:
    return {"runs": hits, "share": share.observed, "low": share.low, "high": share.high}
