"""Downloads the jars of a release into the cache, once.

Ivy, which PySpark's wheel carries, downloads them; so a machine with Java and PySpark needs no Maven. Its own
default is the registry; KELPIE_REPOSITORY names another one (a mirror, in Maven's layout). The jars appear in
the cache by one rename, after every checksum was right: an incomplete download is never used. The checksums
are compared again when jars are used, and the cache must be one that others cannot write to; jars that have
changed are fetched anew.
"""

import hashlib
import os
import re
import selectors
import shutil
import signal
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from xml.sax.saxutils import quoteattr

from kelpie import folders
from kelpie.real import java, locks
from kelpie.real.cluster_errors import RealError, Unavailable
from kelpie.real.releases import Jar

_INPUT = ("-settings", "settings.xml", "-cache", "downloads", "-ivy", "ivy.xml")
_OUTPUT = ("-retrieve", "jars/[artifact]-[revision](-[classifier]).[ext]")

# Ivy prints dots while it downloads. This much silence is a registry that does not answer.
_SILENCE_LIMIT_S = 20.0


def libraries(
    version: str,
    jars: tuple[Jar, ...],
    *,
    title: str | None = None,
    limit_s: float = 600.0,
    announce: Callable[[str], None] | None = None,
) -> Path:
    """The folder that holds exactly these jars, fetched if need be. Raises `Unavailable`.

    The title is for messages; Kafka of this version by default.
    """
    what = title or f"Kafka {version}"
    try:
        store = folders.trusted_cache("kafka")
        folder = store / f"{version}-{_digest(jars)}"
        if _is_whole(folder, jars):
            return folder
        with locks.held(store / f".{version}.lock", limit_s=limit_s, purpose=f"fetching {what}"):
            if not _is_whole(folder, jars):
                if folder.exists():
                    shutil.rmtree(folder)
                if announce:
                    announce(f"Fetching {what}, {len(jars)} jars, into {store} …")
                _fetch(what, jars, folder, limit_s)
    except folders.Untrusted as error:
        raise Unavailable(f"{what} cannot be used: {error.strerror}.") from None
    except OSError as error:
        raise Unavailable(
            f"{what} cannot be fetched: {error.strerror}: {error.filename}. "
            "Set KELPIE_CACHE to a folder that can be written."
        ) from None
    except Unavailable:
        raise
    except RealError as error:
        raise Unavailable(str(error)) from None
    return folder


def ivy_command() -> list[str]:
    """How Ivy is run. Raises `Unavailable` where it cannot be."""
    return [str(java.find()), *java.OPTIONS, *_proxy_options(), "-jar", str(_ivy())]


def _fetch(what: str, jars: tuple[Jar, ...], folder: Path, limit_s: float) -> None:
    """Jars that an interrupted fetch has already downloaded stay beside the folder, for the next fetch."""
    command = ivy_command()
    work = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(work / "jars", ignore_errors=True)
    work.mkdir(parents=True, exist_ok=True)
    (work / "settings.xml").write_text(_settings())
    (work / "ivy.xml").write_text(_module(jars))
    output = _run([*command, *_INPUT, *_OUTPUT], work, what, limit_s)
    _check(output, what, jars, work)
    (work / "jars").rename(folder)
    shutil.rmtree(work, ignore_errors=True)


_found_whole: set[tuple[Path, str]] = set()
"""Folders of jars that this process has checked, by their digest."""


def _is_whole(folder: Path, jars: tuple[Jar, ...]) -> bool:
    """Whether a folder holds these jars, with their checksums, and nothing else. Raises OSError.

    Java loads all that is there. A process reads each folder once: that takes a tenth of a second, and the
    start of a broker takes two.
    """
    if not folder.is_dir():
        return False
    folders.trusted(folder)
    key = folder, _digest(jars)
    if key not in _found_whole:
        if {path.name for path in folder.iterdir()} != {jar.file_name for jar in jars}:
            return False
        if not all(_checksum(folders.trusted(folder / jar.file_name)) == jar.sha256 for jar in jars):
            return False
        _found_whole.add(key)
    return True


def _checksum(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _check(output: str, what: str, jars: tuple[Jar, ...], work: Path) -> None:
    absent = [jar for jar in jars if not (work / "jars" / jar.file_name).is_file()]
    if absent and not re.search(r"^\s+found ", output, re.MULTILINE):
        raise _not_reached(what)
    if absent:
        # Ivy gives all or nothing; its output names those that failed.
        failed = re.findall(r":: (\S+)#(\S+);(\S+?)(?:: not found|!)", output)
        missing = [jar for jar in absent if (jar.organisation, jar.name, jar.revision) in failed] or absent
        raise Unavailable(
            f"{what} cannot be fetched: the registry of jars does not give {missing[0]}"
            f"{f' and {len(missing) - 1} more' if len(missing) > 1 else ''}. "
            "Try again later, or set KELPIE_REPOSITORY to a mirror that holds them."
        )
    for jar in jars:
        arrived = work / "jars" / jar.file_name
        if _checksum(arrived) != jar.sha256:
            size = arrived.stat().st_size
            shutil.rmtree(work, ignore_errors=True)
            raise Unavailable(
                f"{what} cannot be fetched: {jar} arrived damaged ({size} bytes, "
                "wrong checksum) and was thrown away. Try again."
            )


def _not_reached(what: str) -> Unavailable:
    return Unavailable(
        f"{what} is not in the cache ({folders.cache()}) and the registry of jars cannot be reached. "
        "Go online once, or set KELPIE_REPOSITORY to the address of a mirror."
    )


def _run(command: list[str], work: Path, what: str, limit_s: float) -> str:
    """Ivy's output. It is ended when it takes too long, or says nothing for too long."""
    deadline = time.monotonic() + limit_s
    output = b""
    with (
        subprocess.Popen(
            command,
            cwd=work,
            env=java.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as ivy,
        selectors.DefaultSelector() as selector,
    ):
        assert ivy.stdout is not None
        selector.register(ivy.stdout, selectors.EVENT_READ)
        try:
            while selector.select(min(_SILENCE_LIMIT_S, deadline - time.monotonic())):
                chunk = os.read(ivy.stdout.fileno(), 65_536)
                if not chunk:
                    return output.decode(errors="replace")
                output += chunk
        finally:
            ivy.send_signal(signal.SIGKILL)
    if time.monotonic() < deadline:
        raise _not_reached(what)
    raise Unavailable(
        f"{what} could not be fetched within {limit_s:.0f} s. Run it again: it goes on where it stopped."
    )


def _ivy() -> Path:
    jars = java.pyspark_jars()
    ivy_jars = sorted(jars.glob("ivy-*.jar")) if jars else []
    if not ivy_jars:
        raise Unavailable(
            "Ivy, which fetches Kafka, is missing: it comes with PySpark. Install kelpie-kafka[pipeline]."
        )
    return ivy_jars[-1]


def _settings() -> str:
    repository = os.environ.get("KELPIE_REPOSITORY")
    root = f"root={quoteattr(repository.rstrip('/') + '/')}" if repository else ""
    # No POMs and no checksum files: every jar is pinned with its checksum, so they would add nothing.
    return f"""<ivysettings>
  <settings defaultResolver="registry"/>
  <timeout-constraints>
    <timeout-constraint name="patience" connectionTimeout="10000" readTimeout="30000"/>
  </timeout-constraints>
  <resolvers>
    <ibiblio name="registry" {root} m2compatible="true" usepoms="false" useMavenMetadata="false"
             checksums="" timeoutConstraint="patience"/>
  </resolvers>
</ivysettings>
"""


def _module(jars: tuple[Jar, ...]) -> str:
    dependencies = "\n".join(
        f'    <dependency org="{jar.organisation}" name="{jar.name}" rev="{jar.revision}"'
        f' conf="default->*" transitive="false">{_artifact(jar)}</dependency>'
        for jar in jars
    )
    return f"""<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="kelpie" module="kafka"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""


def _artifact(jar: Jar) -> str:
    """Needed only to choose among several jars of a revision."""
    if not jar.classifier:
        return ""
    return f'<artifact name="{jar.name}" type="jar" ext="jar" m:classifier="{jar.classifier}"/>'


def _proxy_options() -> list[str]:
    """Java does not read the proxy variables that everything else on a machine follows."""
    proxies = urllib.request.getproxies()
    options = []
    for scheme in ("http", "https"):
        proxy = urllib.parse.urlsplit(proxies.get(scheme, ""))
        if proxy.hostname:
            options.append(f"-D{scheme}.proxyHost={proxy.hostname}")
            options.append(f"-D{scheme}.proxyPort={proxy.port or 80}")
    if options and (excepted := proxies.get("no")):
        hosts = [host.strip() for host in excepted.split(",") if host.strip()]
        hosts = [f"*{host}" if host.startswith(".") else host for host in hosts]
        options.append(f"-Dhttp.nonProxyHosts={'|'.join(['localhost', '127.*', *hosts])}")
    return options


def _digest(jars: tuple[Jar, ...]) -> str:
    """Changes with the list, so that an older download is not taken for this one."""
    return hashlib.sha256("\n".join(f"{jar} {jar.sha256}" for jar in jars).encode()).hexdigest()[:12]
