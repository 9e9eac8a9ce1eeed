import functools
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from kelpie.real.cluster_errors import Unavailable

_NEEDED = 17

# Small servers that start quickly on few cores: the simple collector, the quick compiler, no verification of
# released classes (a fifth of a start), no shared counters (a killed JVM would leave their file behind).
OPTIONS = (
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Djava.awt.headless=true",
    "-Djava.net.preferIPv4Stack=true",
)


def command(classpath: str, main: str, *, heap_mb: int, options: tuple[str, ...] = ()) -> list[str]:
    """How a Java class is run. Later options win, so the caller's come last."""
    return [str(find()), f"-Xmx{heap_mb}m", *OPTIONS, *options, "-cp", classpath, main]


def environment() -> dict[str, str]:
    """Java takes the encoding of file names, and the language of the system's errors, from the locale."""
    return {**os.environ, "LC_ALL": "C.UTF-8"}


def find() -> Path:
    """The java program, of a version that every release in the catalogue runs on."""
    home = os.environ.get("JAVA_HOME")
    return _checked(shutil.which("java", path=f"{home}/bin") if home else shutil.which("java"), home)


def pyspark_jars() -> Path | None:
    """The jars in PySpark's wheel: Ivy and ZooKeeper are among them. PySpark itself is not imported."""
    import importlib.util  # noqa: PLC0415  # Rarely needed, and slow to load.

    spec = importlib.util.find_spec("pyspark")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (jars := Path(folder) / "jars").is_dir():
            return jars
    return None


def of_pyspark(what: str, names: Sequence[str]) -> list[Path]:
    """Jars in PySpark's wheel, by their names. Raises `Unavailable`; `what` needs them."""
    folder = pyspark_jars()
    if folder is None:
        raise Unavailable(f"{what} is missing: it comes with PySpark. Install kelpie-kafka[pipeline].")
    files: list[Path] = []
    for name in names:
        # A revision begins with a digit; names that only begin alike do not.
        jars = sorted(folder.glob(f"{name}-[0-9]*.jar"))
        if not jars:
            raise Unavailable(f"{what} is incomplete: PySpark's wheel ({folder}) holds no {name}.")
        files.append(jars[-1])
    return files


@functools.cache
def _checked(program: str | None, home: str | None) -> Path:
    if program is None:
        where = f"JAVA_HOME={home} holds no bin/java" if home else "no java on the PATH"
        raise Unavailable(f"Java is missing ({where}). Install Java {_NEEDED} or newer, or set JAVA_HOME.")
    try:
        answer = subprocess.run(
            [program, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(
            f"Java at {program} does not run: {error}. Set JAVA_HOME to one that does."
        ) from None
    version = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    if answer.returncode or not version:
        raise Unavailable(f"Java at {program} does not say its version. Set JAVA_HOME to one that does.")
    if int(version[1]) < _NEEDED:
        raise Unavailable(
            f"Java {_NEEDED} or newer is missing: {program} is Java {version[1]}. "
            "Set JAVA_HOME to a newer one."
        )
    return Path(program)
