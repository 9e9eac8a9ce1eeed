"""From observations to findings: which groups do not consume, why, and what to do.

    observations ──► cases.build ──► a Case per group, on one ClusterView ──► rules ──► findings ──► renderers

case      the input of a rule: all that is known of one group, and the cluster
cases     makes cases of observations: joins rows, and orders them by time
finding   what a rule says: severity, evidence, remedies
rule      what a rule is; `rules/` holds one file per rule, whose docstring is its page
diagnosis all findings of all cases, grouped by cause
report    what the renderers in `rendering/` (terminal, JSON) say alike

Nothing here asks a cluster, reads a file or reads a clock.
"""
