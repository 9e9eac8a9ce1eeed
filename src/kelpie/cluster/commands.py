"""Commands to paste, with the address of this cluster in them. Names are quoted for a shell.

A command that changes something is printed without --apply or --execute: its plan comes first.
"""

from functools import lru_cache

from kelpie.cluster.view import ClusterView
from kelpie.model.names import TopicPartition
from kelpie.model.quoting import quoted, words_of

BEGINNINGS = ("kelpie ", "kafka-")
"""How lines begin that are commands."""
_CONSUMER = "kafka-console-consumer.sh"


def kelpie(command: str, cluster: ClusterView, *options: object, name: object = "") -> str:
    """A command of Kelpie: kelpie("reset", cluster, "--to-earliest", name="billing").

    `name`: of the group or partition that it is about. One that begins with a hyphen comes last, behind "--".
    """
    begin = _begin("kelpie", command, "-b", _address(cluster))
    text = str(name)
    if text.startswith("-"):
        return f"{begin} {_line(*options, '--', text)}"
    about = f"{begin} {quoted(text)}" if text else begin
    return f"{about} {_line(*options)}" if options else about


def peek(cluster: ClusterView, partition: TopicPartition, offset: int) -> str:
    """`kelpie peek`: the record at an offset, before anybody skips it."""
    ending = ["--"] if partition.topic.startswith("-") else []
    return _line("kelpie", "peek", "-b", _address(cluster), *ending, *partition, offset)


def kafka(tool: str, cluster: ClusterView, *words: object) -> str:
    """A command of Kafka's own tools."""
    return _line(f"{tool}.sh", "--bootstrap-server", _address(cluster), *words)


def kafka_at(tool: str, address: str, *words: object) -> str:
    """The same, which asks one broker."""
    return _line(f"{tool}.sh", "--bootstrap-server", address, *words)


def zookeeper_shell(cluster: ClusterView, action: str, path: str) -> str:
    """Kafka's own shell for ZooKeeper (up to 3.9): it lists (`ls`) or shows (`get`, `stat`) a node."""
    return _line("zookeeper-shell.sh", _zookeeper(cluster), action, path)


def mappings(action: str, cluster: ClusterView) -> str:
    """`kelpie mappings check` or `repair`."""
    return _line("kelpie", "mappings", action, "--zookeeper", _zookeeper(cluster), "-b", _address(cluster))


def look_at_zookeeper(cluster: ClusterView) -> str:
    """`kelpie doctor` on the groups that ZooKeeper keeps."""
    return _line("kelpie", "doctor", "--zookeeper", _zookeeper(cluster))


def with_properties(line: str, file: str) -> str:
    """The same command, which reads these client properties too. Lines that are no commands stay."""
    if not line.startswith(BEGINNINGS):
        return line
    words = words_of(line)
    option = "--consumer.config" if words[0] == _CONSUMER else "--command-config"
    if option in words:
        return line
    for at, word in enumerate(words):
        if word in ("-b", "--bootstrap-server"):
            return " ".join([*words[: at + 2], option, quoted(file), *words[at + 2 :]])
    return line


def _address(cluster: ClusterView) -> str:
    return cluster.bootstrap or "BROKER:9092"


def _zookeeper(cluster: ClusterView) -> str:
    return cluster.zookeeper or "ZOOKEEPER:2181"


def _line(*words: object) -> str:
    return " ".join([quoted(str(word)) for word in words])


@lru_cache(maxsize=1024)
def _begin(*words: str) -> str:
    """Commands for thousands of groups begin alike."""
    return _line(*words)
