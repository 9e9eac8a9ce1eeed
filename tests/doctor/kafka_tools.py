"""The options of Kafka's own tools, as their help prints them: those with a value, and those without.

Judges the commands that findings print. A tool or an option that is not here is an error: add it from the
tool's help.
"""

_VALUES: dict[str, str] = {
    "kafka-topics.sh": "topic partitions replication-factor config",
    "kafka-consumer-groups.sh": "group topic to-offset to-datetime by-duration shift-by from-file timeout",
    "kafka-share-groups.sh": "group topic to-datetime",
    "kafka-streams-groups.sh": "group topic",
    "kafka-configs.sh": "entity-type entity-name add-config delete-config",
    "kafka-log-dirs.sh": "topic-list broker-list",
    "kafka-acls.sh": "allow-principal principal operation group topic transactional-id resource-pattern-type",
    "kafka-transactions.sh": "topic partition start-offset producer-id producer-epoch coordinator-epoch "
    "broker-id transactional-id max-transaction-timeout",
    "kafka-console-consumer.sh": "topic partition offset max-messages property timeout-ms group",
    "kafka-get-offsets.sh": "topic topic-partitions time",
    "kafka-broker-api-versions.sh": "",
    "kafka-metadata-quorum.sh": "",
    "kafka-leader-election.sh": "topic partition election-type",
    "kafka-reassign-partitions.sh": "reassignment-json-file throttle",
}
_FLAGS: dict[str, str] = {
    "kafka-topics.sh": "describe list alter create delete unavailable-partitions under-replicated-partitions "
    "under-min-isr-partitions at-min-isr-partitions exclude-internal",
    "kafka-consumer-groups.sh": "describe list members verbose state offsets reset-offsets dry-run execute "
    "delete delete-offsets to-earliest to-latest to-current all-groups all-topics export",
    "kafka-share-groups.sh": "describe list members verbose state offsets delete delete-offsets",
    "kafka-streams-groups.sh": "describe list members verbose state offsets",
    "kafka-configs.sh": "describe alter all",
    "kafka-log-dirs.sh": "describe",
    "kafka-acls.sh": "list add remove",
    "kafka-console-consumer.sh": "from-beginning",
    "kafka-metadata-quorum.sh": "status replication",
    "kafka-reassign-partitions.sh": "execute verify list cancel",
}
_ACTIONS = {
    "kafka-transactions.sh": {"abort", "describe-producers", "find-hanging", "list", "describe"},
    "kafka-metadata-quorum.sh": {"describe"},
}

METRICS = "curl -sL http://BROKER:8080/metrics/ | "
"""Kafka has no tool that shows a broker's metrics."""
_OF_SHELL = {"ls", "get", "stat"}


def misused_shell(words: list[str]) -> str:
    """The same of zookeeper-shell.sh HOST:PORT ACTION PATH. What it may do here changes nothing."""
    if len(words) != 4:
        return "an address, an action and a path are expected"
    _, address, action, path = words
    if ":" not in address:
        return f"{address} has no port"
    if action not in _OF_SHELL:
        return f"{action} is none of {sorted(_OF_SHELL)}"
    # ZooKeeper refuses a path with an empty part, as "//".
    is_path = path.startswith("/") and all(path.split("/")[1:])
    return "" if is_path else f"{path} is no path"


def misused(words: list[str]) -> str:
    """What the tool would refuse in this command; empty if nothing."""
    tool, *rest = words
    if tool not in _VALUES:
        return f"no tool {tool} is known"
    values = {f"--{name}" for name in (*_VALUES[tool].split(), "bootstrap-server")}
    flags = {f"--{name}" for name in _FLAGS.get(tool, "").split()}
    actions = _ACTIONS.get(tool, set())
    at, has_server, has_action = 0, False, not actions
    while at < len(rest):
        word = rest[at]
        if word in values:
            if at + 1 == len(rest):
                return f"{word} lacks its value"
            has_server |= word == "--bootstrap-server"
            at += 1
        elif word in actions:
            has_action = True
        elif word not in flags:
            return f"{tool} knows no {word}"
        at += 1
    return "" if has_server and has_action else "no server or no action is named"
