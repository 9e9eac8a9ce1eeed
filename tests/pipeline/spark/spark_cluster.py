"""A real Spark cluster on loopback, of PySpark's own jars: a master, and workers of one core each.

Its executors have a Python that does not find Kelpie anywhere but in a zip file: what runs there was shipped.
"""

import sys
import tempfile
import time
from pathlib import Path

import pyspark

from kelpie.real import ports
from kelpie.real.keeper import Keeper
from kelpie.real.process import Jvm

_UP_S = 60.0
_JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData"
_HIDING = """\
import sys
from importlib.machinery import PathFinder


class Hiding:
    def find_spec(self, name, path=None, target=None):
        if name == "kelpie":
            found = PathFinder.find_spec(name, [place for place in sys.path if place.endswith(".zip")])
            if found is not None:
                return found
        if name in {hidden!r} or name == "kelpie":
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
        return None


sys.meta_path.insert(0, Hiding())
"""


def python_without_kelpie(folder: Path, *hidden: str) -> Path:
    """A Python that has everything that this one has, but for Kelpie and these modules."""
    home = folder / "-".join(["python", *hidden])
    home.mkdir()
    (home / "sitecustomize.py").write_text(_HIDING.format(hidden=hidden))
    program = home / "python"
    program.write_text(
        f'#!/bin/sh\nPYTHONPATH="{home}${{PYTHONPATH:+:$PYTHONPATH}}" exec "{sys.executable}" "$@"\n'
    )
    program.chmod(0o755)
    return program


class SparkCluster:
    """`with SparkCluster() as cluster:`; its processes go even if the test run is killed."""

    def __init__(self, workers: int = 2) -> None:
        self._workers = workers
        self._keeper = Keeper()
        self._processes: list[Jvm] = []
        self.folder = Path(tempfile.mkdtemp(prefix="kelpie-spark-cluster-"))
        self._keeper.own(self.folder)

    def __enter__(self) -> "SparkCluster":
        try:
            port, page = ports.free(2)
            self.master = f"spark://{ports.HOST}:{port}"
            master = self._start(
                "Master", "--host", ports.HOST, "--port", str(port), "--webui-port", str(page)
            )
            self._await(master, "I have been elected leader")
            workers = [
                self._start(
                    "Worker", "--cores", "1", "--memory", "1g", "--work-dir", str(self.folder), self.master
                )
                for _ in range(self._workers)
            ]
            for worker in workers:
                self._await(worker, "Successfully registered with master")
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for process in reversed(self._processes):
            process.kill()
        self._processes = []
        self._keeper.clean()

    def python(self, *hidden: str) -> Path:
        return python_without_kelpie(self.folder, *hidden)

    def _start(self, name: str, *options: str) -> Jvm:
        home = Path(pyspark.__file__).parent
        number = len(self._processes)
        environment = {
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": ports.HOST,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": _JAVA,
        }
        command = ["env", "-u", "PYTHONPATH", *(f"{name}={value}" for name, value in environment.items())]
        command += [
            str(home / "bin" / "spark-class"),
            f"org.apache.spark.deploy.{name.lower()}.{name}",
            *options,
        ]
        log = self.folder / f"{number}-{name.lower()}.log"
        process = Jvm.spawn(command, folder=self.folder, log=log, keeper=self._keeper)
        self._processes.append(process)
        return process

    def _await(self, process: Jvm, words: str) -> None:
        deadline = time.monotonic() + _UP_S
        while words not in process.said():
            assert process.alive, f"it ended:\n{process.tail()}"
            assert time.monotonic() < deadline, f"not up within {_UP_S} s:\n{process.tail()}"
            time.sleep(0.05)
