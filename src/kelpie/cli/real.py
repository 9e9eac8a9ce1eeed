"""kelpie real: real Kafka on this machine, to reproduce an incident on the real software."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from kelpie.cli import real_stores
from kelpie.cli.command import CommandError, describe, option, reads, setting
from kelpie.cli.environment import CACHE, JAVA_HOME, REPOSITORY, STATE
from kelpie.cli.exit_status import ExitStatus
from kelpie.cli.json_output import add_json_option, print_json
from kelpie.documents.real import real_clusters_document
from kelpie.real import java, state
from kelpie.real.cluster import RealCluster
from kelpie.real.cluster_errors import ClusterRefused, RealError
from kelpie.real.releases import RELEASES

_KIND_ORDER = ("zookeeper", "controller", "broker")
_EXAMPLES = {
    "up": """
        kelpie real up --brokers 3
            three brokers of the newest release
        kelpie real up --version 0.9.0.1 --name old --config offsets.topic.num.partitions=5
            one of the release of 2016, beside it
    """,
    "list": """
        kelpie real list
            clusters, with addresses, processes and logs of their nodes
    """,
    "kill": """
        kelpie real kill 2
            broker 2 crashes
    """,
    "stop": """
        kelpie real stop 2 --name old
            broker 2 of the cluster "old" is shut down
    """,
    "start": """
        kelpie real start 2
            broker 2 is back, with what it has on its disk
    """,
    "down": """
        kelpie real down
            end all nodes, and remove their data
    """,
    "store": real_stores.EXAMPLES,
    "tool": """
        kelpie real tool kafka-topics --create --topic orders --partitions 3
            a topic
        seq 10 | kelpie real tool kafka-console-producer --topic orders
            ten records
        kelpie real tool kafka-consumer-groups --describe --all-groups
            what Kafka itself says of its groups
    """,
}
_STATUSES = {
    ExitStatus.OK: "done",
    ExitStatus.NO: "a node could not be started or ended, or a tool failed; a tool's own status is kept",
}


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "real",
        description="Starts real Kafka clusters on loopback, ends and restarts their nodes, and runs Kafka's "
        "own tools against them; also stores for tables of the pipeline. The jars are fetched when they are "
        "first used.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    up = _action(actions, "up", _up, "start a cluster")
    option(up, "--version V", f"{', '.join(RELEASES)}; %(default)s if left out", default=next(iter(RELEASES)))
    option(up, "--brokers N", "how many brokers; %(default)s if left out", type=int, default=1)
    option(up, "--port P", "port of the first broker; the others follow it", type=int)
    option(up, "--config NAME=VALUE", "a line for every server.properties", action="append", default=[])
    option(up, "--jvm OPTION", "an option for every broker's JVM: --jvm=-Xmx2g", action="append", default=[])

    _action(actions, "list", _list, "show the clusters that are up", named=False)
    kill, stop = partial(_end, RealCluster.kill, "was killed"), partial(_end, RealCluster.stop, "has stopped")
    _nodes(_action(actions, "kill", kill, "end nodes as a crash would (SIGKILL)"))
    _nodes(_action(actions, "stop", stop, "end nodes as an operator would (SIGTERM)"))
    start = _action(actions, "start", _start, "start nodes again: same port, same data")
    _nodes(start)
    option(start, "--no-wait", "do not wait until the nodes serve")
    _action(actions, "down", _down, "end a cluster and remove its folder")

    store = _action(
        actions, "store", real_stores.store, "start an S3 server, HDFS or YARN until Ctrl-C", named=False
    )
    real_stores.add_store_arguments(store)

    tool = _action(actions, "tool", _tool, "run one of Kafka's own tools against a cluster")
    tool.add_argument("tool", metavar="TOOL", help="a script's name (kafka-topics) or a class")
    tool.add_argument(
        "arguments",
        nargs=argparse.REMAINDER,
        metavar="…",
        help="its arguments; the cluster's address is added",
    )


def _action(
    actions: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    run: Callable[[argparse.Namespace], int],
    summary: str,
    *,
    named: bool = True,
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
    parser.set_defaults(run=_mending(run))
    describe(parser, examples=_EXAMPLES[name], statuses=_STATUSES)
    if name not in ("tool", "store"):
        add_json_option(parser, "real", "print the clusters, as they are then, as JSON")
    reads(parser, STATE, CACHE, REPOSITORY, JAVA_HOME)
    if named:
        parser.add_argument(
            "--name", default=state.DEFAULT, help="the cluster's name; %(default)r if left out"
        )
    return parser


def _nodes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("nodes", nargs="+", metavar="NODE", help="a broker's number, zookeeper or controller")


def _mending(run: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """The command, with errors of real clusters as errors that a user can mend."""

    def command(arguments: argparse.Namespace) -> int:
        try:
            return run(arguments)
        except RealError as error:
            text = str(error)
            status = ExitStatus.USAGE if isinstance(error, ClusterRefused) else ExitStatus.NO
        except BrokenPipeError:
            raise
        except OSError as error:
            text = f"{error.strerror}: {error.filename}. KELPIE_STATE and KELPIE_CACHE choose other folders."
            status = ExitStatus.NO
        raise CommandError(text, status)

    return command


def _up(arguments: argparse.Namespace) -> int:
    name = arguments.name
    settings = dict(map(setting, arguments.config))
    with state.locked(name):
        if state.exists(name):
            raise CommandError(
                f"A cluster named {name!r} is already up. End it with: kelpie real down{_option(name)}, "
                "or give the new one another --name."
            )
        state.clear(name)
        cluster = RealCluster(
            arguments.version,
            arguments.brokers,
            config=settings,
            port=arguments.port,
            root=state.folder(name),
            jvm_options=arguments.jvm,
            announce=lambda line: print(line, file=sys.stderr, flush=True),
        ).open()
        state.save(cluster)
        cluster.detach()
    if arguments.json:
        print_json(real_clusters_document({name: cluster}))
        return ExitStatus.OK
    _describe(name, cluster)
    broker = cluster.brokers[-1].name
    print("\nNext:")
    for command, meaning in (
        (f"tool{_option(name)} kafka-topics --list", "Kafka's own tools, of this release"),
        (f"kill{_option(name)} {broker}", "end a broker as a crash would"),
        (f"start{_option(name)} {broker}", "start it again: same port, same data"),
        (f"down{_option(name)}", "end everything, remove the folder"),
    ):
        print(f"  kelpie real {command}\n      {meaning}")
    return ExitStatus.OK


def _list(arguments: argparse.Namespace) -> int:
    clusters = _clusters()
    if arguments.json:
        print_json(real_clusters_document(clusters))
        return ExitStatus.OK
    if not clusters:
        print("No cluster is up. Start one with: kelpie real up")
    for at, (name, cluster) in enumerate(clusters.items()):
        if at:
            print()
        if isinstance(cluster, str):
            print(f"{name}: {cluster}")
        else:
            _describe(name, cluster)
    return ExitStatus.OK


def _clusters() -> dict[str, RealCluster | str]:
    """Those that are up; of one that cannot be looked at, why."""
    found: dict[str, RealCluster | str] = {}
    for name in state.names():
        try:
            found[name] = state.load(name)
        except RealError as error:
            found[name] = str(error)
    return found


def _end(end: Callable[[RealCluster, str], None], done: str, arguments: argparse.Namespace) -> int:
    with state.changing(arguments.name) as cluster:
        for name in _known(cluster, arguments.nodes):
            end(cluster, name)
            if not arguments.json:
                print(f"{_capital(cluster, name)} {done}.", flush=True)
        if arguments.json:
            print_json(real_clusters_document({arguments.name: cluster}))
    return ExitStatus.OK


def _start(arguments: argparse.Namespace) -> int:
    with state.changing(arguments.name) as cluster:
        # A broker needs its ZooKeeper or controller: they go first.
        names = sorted(
            _known(cluster, arguments.nodes), key=lambda name: _KIND_ORDER.index(cluster.nodes[name].kind)
        )
        for name in names:
            cluster.start(name, wait=not arguments.no_wait)
            serves = "was started" if arguments.no_wait else "is up"
            node = cluster.find(name)
            assert node.process is not None
            if not arguments.json:
                pid = node.process.pid
                print(f"{_capital(cluster, name)} {serves}: port {node.port}, pid {pid}.", flush=True)
        if arguments.json:
            print_json(real_clusters_document({arguments.name: cluster}))
    return ExitStatus.OK


def _down(arguments: argparse.Namespace) -> int:
    with state.changing(arguments.name) as cluster:
        ended = sum(node.up for node in cluster.nodes.values())
        root = cluster.root
        cluster.close()
    if arguments.json:
        print_json(real_clusters_document(_clusters()))
    else:
        print(f"Cluster {arguments.name!r} is down: {ended} processes ended, {_short(root)} removed.")
    return ExitStatus.OK


def _tool(arguments: argparse.Namespace) -> int:
    command = state.load(arguments.name).tool_command(arguments.tool, arguments.arguments)
    sys.stdout.flush()
    # The tool takes our place: its input, output, signals and exit status are its own.
    os.execve(command[0], command, java.environment())


def _known(cluster: RealCluster, nodes: Sequence[str]) -> list[str]:
    """All are checked before the first one is changed."""
    return [cluster.find(name).name for name in dict.fromkeys(nodes)]


def _describe(name: str, cluster: RealCluster) -> None:
    brokers = cluster.brokers
    print(
        f"{name}: Kafka {cluster.release.version}, {len(brokers)} broker{'s' * (len(brokers) > 1)}"
        + (f", ZooKeeper {cluster.release.zookeeper}" if cluster.zookeeper_connect else ", KRaft")
    )
    # Three addresses are enough for any client, and fit on a line.
    print(f"  bootstrap  {','.join(cluster.bootstrap_servers.split(',')[:3])}")
    if cluster.zookeeper_connect:
        print(f"  zookeeper  {cluster.zookeeper_connect}")
    print(f"  folder     {_short(cluster.root)}")
    print(f"\n  {'NODE':<12}{'STATE':<8}{'PID':>8}{'PORT':>8}  {'DATA':<18}LOG")
    for node in cluster.nodes.values():
        pid = node.process.pid if node.process and node.up else "-"
        data, log = (path.relative_to(cluster.root) for path in (node.data, node.log))
        print(f"  {node.name:<12}{'up' if node.up else 'down':<8}{pid:>8}{node.port:>8}  {data!s:<18}{log}")


def _capital(cluster: RealCluster, name: str) -> str:
    text = str(cluster.find(name))
    return text[0].upper() + text[1:]


def _option(name: str) -> str:
    return "" if name == state.DEFAULT else f" --name {name}"


def _short(path: Path) -> str:
    return f"~/{path.relative_to(Path.home())}" if path.is_relative_to(Path.home()) else str(path)
