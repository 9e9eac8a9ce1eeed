"""Configuration files of brokers, controllers and ZooKeeper, as each release of Kafka names the settings.

The defaults make clusters quick rather than durable: short sessions, so that a killed broker can come back in
seconds; no wait before a group's first rebalance; few partitions in the internal topics. A caller's settings
win over all of them, save those in `OWNED`, by which the nodes find each other.
"""

from collections.abc import Mapping
from pathlib import Path

from kelpie.real.cluster_errors import ClusterRefused
from kelpie.real.ports import HOST
from kelpie.real.releases import Release

CONTROLLER_ID = 100

OWNED = frozenset(
    {
        "advertised.host.name",
        "advertised.listeners",
        "advertised.port",
        "broker.id",
        "controller.listener.names",
    }
    | {"controller.quorum.bootstrap.servers", "controller.quorum.voters", "host.name", "listeners", "log.dir"}
    | {"log.dirs", "metadata.log.dir", "node.id", "port", "process.roles", "zookeeper.connect"}
)

_SESSION_MS = 4000


def defaults(release: Release, brokers: int) -> dict[str, object]:
    replicas = min(3, brokers)
    values: dict[str, object] = {
        "group.initial.rebalance.delay.ms": 0,
        "group.min.session.timeout.ms": 500,
        "offsets.topic.num.partitions": 5,
        "offsets.topic.replication.factor": replicas,
        # Each cleaner takes this much of the heap at once; 128 MB by default.
        "log.cleaner.dedupe.buffer.size": 16 * 2**20,
        "transaction.state.log.num.partitions": 2,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": min(2, replicas),
    }
    if release.quorum == "kraft":
        values |= {
            "broker.heartbeat.interval.ms": 500,
            "broker.session.timeout.ms": _SESSION_MS,
            "group.streams.initial.rebalance.delay.ms": 0,
            "share.coordinator.state.topic.num.partitions": 2,
            "share.coordinator.state.topic.replication.factor": replicas,
            "share.coordinator.state.topic.min.isr": min(2, replicas),
        }
    else:
        values |= {
            "zookeeper.session.timeout.ms": _SESSION_MS,
            # Otherwise the same as the session's, which is short for a busy machine.
            "zookeeper.connection.timeout.ms": 30_000,
        }
    return values


def broker(
    release: Release, node: int, port: int, data: Path, further: Mapping[str, int] | None = None
) -> dict[str, object]:
    """The identity of a broker, and where it listens."""
    values: dict[str, object] = {"broker.id": node, "log.dirs": data}
    if release.listeners:
        return values | {"listeners": _listeners({"PLAINTEXT": port, **(further or {})})}
    return values | {"host.name": HOST, "port": port, "advertised.host.name": HOST}


def kraft(node: int, roles: str, listeners: Mapping[str, int], data: Path, quorum: str) -> dict[str, object]:
    """The same, where a node may be a broker, a controller or both."""
    secured = [name for name in listeners if name not in ("PLAINTEXT", "CONTROLLER")]
    protocols = [f"{name}:{name}" for name in ("PLAINTEXT", *secured)]
    return {
        # Without secured listeners, Kafka takes PLAINTEXT for controllers by itself.
        **(
            {"listener.security.protocol.map": f"CONTROLLER:PLAINTEXT,{','.join(protocols)}"}
            if secured
            else {}
        ),
        "process.roles": roles,
        "node.id": node,
        "controller.quorum.voters": quorum,
        "controller.listener.names": "CONTROLLER",
        "listeners": _listeners(listeners),
        "log.dirs": data,
    }


def _listeners(listeners: Mapping[str, int]) -> str:
    return ",".join(f"{name}://{HOST}:{port}" for name, port in listeners.items())


def zookeeper(port: int, data: Path) -> dict[str, object]:
    return {
        "dataDir": data,
        "clientPort": port,
        "clientPortAddress": HOST,
        "maxClientCnxns": 0,
        "tickTime": 500,
        # Sessions are bound to 2 to 20 ticks by default; here clients choose.
        "minSessionTimeout": 500,
        "maxSessionTimeout": 3_600_000,
        "admin.enableServer": "false",
        "4lw.commands.whitelist": "*",
    }


def checked(config: Mapping[str, object]) -> dict[str, str]:
    """A caller's settings as text, or a refusal that names the bad one."""
    settings = {}
    for key, value in config.items():
        setting = str(value).lower() if isinstance(value, bool) else str(value)
        if not key or any(sign.isspace() or sign in "=:#!" for sign in key):
            raise ClusterRefused(
                f"{key!r} is not the name of a setting. Write NAME=VALUE, as in server.properties."
            )
        if "\n" in setting or "\r" in setting:
            raise ClusterRefused(f"The value of {key} holds a line break. Settings are single lines.")
        if key in OWNED:
            raise ClusterRefused(f"{key} cannot be set: the nodes of the cluster find each other by it.")
        settings[key] = setting
    return settings


def text(values: Mapping[str, object]) -> str:
    """Text for java.util.Properties, which reads Latin-1 and takes backslashes for escapes."""
    lines = []
    for key, value in values.items():
        escaped = str(value).replace("\\", "\\\\")
        escaped = "".join(sign if " " <= sign <= "~" else _escape(sign) for sign in escaped)
        lines.append(f"{key}={escaped}\n")
    return "".join(lines)


def _escape(sign: str) -> str:
    units = sign.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def log4j(level: str, target: str) -> str:
    """Logs in the pattern that Kafka ships, so that what reads real logs reads these."""
    return f"""log4j.rootLogger={level}, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.target={target}
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
"""


def log4j2(level: str, target: str) -> str:
    # Its own hook would drop the last lines of a server that is stopped.
    return f"""status = error
shutdownHook = disable
appender.out.type = Console
appender.out.name = out
appender.out.target = {target.replace(".", "_").upper()}
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = {level}
rootLogger.appenderRef.out.ref = out
"""
