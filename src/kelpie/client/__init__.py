"""Connections to real clusters, from Kafka 0.9 to 4.x, and the survey that asks every broker.

From the outside in:

- `survey`: the state of a whole cluster, also of one that is half dead; what could not be asked is in it.
- `nodes.Nodes`: a cluster as a client sees it: bootstrap, one connection to each broker.
- `connection.Connection`: one connection: many requests under way, each with its time limit.
- `opening`: how a connection comes about: TCP (`dialling`), TLS (`tls`), versions (`negotiation`,
  `versions`), SASL (`sasl`). `memory`: what one connection finds out for the next.
- `settings`, `address`, `security`: what must be known before. `properties`: read from a file as Kafka's own
  tools take it with --command-config (`java_properties`, `jaas`, `login`, `stores`: parts of it).
- `failures`: everything that can go wrong; `counters`: what it costs.

Nothing here changes a cluster: no topic is created, no group joined, nothing committed, unless the caller
asks for just that.
"""
