"""From observations to findings: which groups do not consume, why, and what to do.

    observations ──► cases.build ──► a Case per group, on one ClusterView ──► rules ──► findings ──► renderers

case      what a rule looks at: all that is known of one group, and the cluster that it lives on
cases     makes cases of observations: joins, orders by time, works out which brokers are dead
finding   verdict, severity, evidence, remedies
rule      what a rule is; `rules/` holds one file per rule, whose docstring is its page
diagnosis all findings of all cases, gathered by cause: the blast radius
renderers terminal and JSON

Nothing here asks a cluster, reads a file or knows what time it is.
"""
