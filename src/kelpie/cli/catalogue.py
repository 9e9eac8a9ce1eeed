"""All commands by name, in groups, with a line about each.

`kelpie --help` shows this and imports none of them: importing all takes a second. Each command is a module of
its name, with _ for -, that has `register(subparsers)`.
"""

CATALOGUE: dict[str, dict[str, str]] = {
    "Examine": {
        "doctor": "which groups do not consume, why, and what to do now",
        "groups": "all groups at a glance: state, lag, worst finding",
        "serve": "the same in a browser, and as metrics for Prometheus",
        "explain": "what a finding means, and what to do about it",
        "ack": "acknowledge a finding for a while",
        "where": "which broker coordinates a group, and if it is healthy",
        "probe": "walk a consumer's way to its next record",
        "peek": "look at a record without joining a group",
    },
    "Repair": {
        "rehome": "move a group to a name on a healthy coordinator",
        "reset": "set the committed offsets of a group",
        "elect": "elect leaders of partitions",
        "reassign-offsets-topic": "give __consumer_offsets enough replicas",
        "migrate-offsets": "move a group's offsets from ZooKeeper to Kafka",
        "mappings": "check and mend KoP's mapping from client to group",
        "undo": "list what Kelpie has changed, and take it back",
    },
    "Consume": {
        "consume": "read topics as a member of a group",
        "guard": "run a consumer, restart it when it has failed for good",
    },
    "Collect and compute": {
        "collect": "look at a cluster again and again, keep each look",
        "pipeline": "evidence of any size as tables, with Spark",
        "offsets": "recover committed offsets from disks and tables",
    },
    "Reproduce": {
        "lab": "a Kafka-compatible cluster in one process, with faults",
        "real": "real Kafka clusters on this machine",
        "simulate": "many seeded runs on a virtual clock",
        "names": "names of groups that live on a given partition",
    },
    "This program": {
        "mcp": "answers for assistants: the Model Context Protocol",
        "completion": "completion for bash, zsh, fish and others",
    },
}

SUMMARIES = {name: text for commands in CATALOGUE.values() for name, text in commands.items()}
COMMANDS = tuple(SUMMARIES)
