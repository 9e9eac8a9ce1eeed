"""Repairs: plan first, apply on request, undo or a plain word that there is none.

    look ──► plan ──► print ──► apply

One file for each repair: `rehome` (its words: `group_move`), `reset`, `reassign`, `elect`. What they share:

- `plan`: what a plan is. `rendering`: how it is printed. `applying`: how it is carried out, step by step.
- Thinking without input or output: `group_names` (where a group can live), `occupancy` (whether a name is
  free), `offsets` (where a group stood, by what is known), `targets` (where a reset puts it), `reassignment`
  (which replicas go where), `losses` (what an unclean election costs), `offsets_file` (the CSV of Kafka's own
  tool), `commands` and `by_hand` (lines to paste).
- Asking: `picture` (the cluster), `coordinators` (groups and offsets), `log_ends`, `survivors` (copies on
  living brokers that do not lead), `sources` (all places where offsets can still be had).
- Changing: `coordinators` commits and deletes, `moving` moves replicas through the `controller`, `zookeeper`
  does so on old clusters, `keeping` keeps files that undo needs.

Nothing but an action of `applying` changes a cluster.
"""
