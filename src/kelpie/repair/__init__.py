"""Repairs: plan first, apply on request, undo if that is possible.

    survey ──► plan ──► print ──► apply

One file for each repair: `rehome`, `reset`, `migrate_offsets`, `reassign`, `elect`, `mappings`; the words of
a long plan are in a file of their own (`group_move`, `reassignment_plan`, `election_plan`). What they share:

- `plan`: what a plan is. `rendering`: how it is printed. `applying`: how it is carried out, step by step.
- Decisions without input or output: `group_names` (where a group can live, whether a name is free), `claims`
  (which offsets a group had committed), `reset_targets` (the offsets that a reset commits), `losses` (what an
  unclean election loses), `replica_placement` (which replicas go where), `offsets_file` (the CSV of Kafka's
  own tool).
- Questions: `picture` (the cluster), `coordinators` (groups and offsets), `log_ends`, `replica_copies`
  (copies on living brokers that do not lead), `offset_sources` (all places where offsets are still known),
  `zookeeper_group` (a group of 0.8's kind).
- Changes: `coordinators` commits and deletes, `committing` notes before a commit and compares after it,
  `controller` moves replicas, `zookeeper` does so on old clusters.
- The way back: `change_records` notes what is changed, before it is; `undo` takes it back.

Nothing but an action of `applying` changes a cluster.
"""
