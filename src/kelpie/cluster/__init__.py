"""The picture of a cluster, as far as it could be seen: pure, without input or output.

`picture` builds a ClusterView from observations; `liveness` decides which brokers are dead, and when each
was away; `outages` finds periods in which several were away at once. The doctor, the repairs, the pipeline
and the commands share it.
"""

from kelpie.cluster.outages import Outage
from kelpie.cluster.picture import build_cluster
from kelpie.cluster.view import ClusterView

__all__ = ["ClusterView", "Outage", "build_cluster"]
