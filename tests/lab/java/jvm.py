"""One JVM with the jars of Kafka 4.3.1, driven from Python: its client as a library, its tools by their main.

A JVM of its own for every run of a tool would cost a second of CPU each. py4j comes with PySpark; it gives
Java's classes as they are, and no Java compiler is needed. Kafka's tools end through `Exit`, which is told
here to throw instead.
"""

import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway, JavaObject
from py4j.protocol import Py4JJavaError

from kelpie.real import class_archive, fetch, java, properties, releases

RELEASE = releases.find("4.3.1")
_LIMIT_S = 90
_TRACE_OF_EXIT = re.compile(
    r"(^\d+\n)?^java\.util\.concurrent\.CancellationException: \d+\n(\s+at .*\n)*\n*", re.M
)


@dataclass(frozen=True, slots=True)
class Said:
    status: int
    stdout: str
    stderr: str


class KafkaJvm:
    """Raises `Unavailable` where it cannot be had."""

    def __init__(self, folder: Path) -> None:
        self._logging = folder / "log4j2.properties"
        self._logging.write_text(properties.log4j2("WARN", "System.err"))
        self._log = (folder / "jvm.log").open("wb")
        self._process = subprocess.Popen(
            [*self.command("py4j.GatewayServer"), "--die-on-broken-pipe", "--enable-auth", "0"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=java.environment(),
        )
        assert self._process.stdout is not None
        port, token = (self._process.stdout.readline().decode().strip() for _ in range(2))
        where = GatewayParameters(
            port=int(port), auth_token=token, auto_convert=True, auto_field=True, read_timeout=_LIMIT_S
        )
        self._gateway = JavaGateway(gateway_parameters=where)
        self.jvm = self._gateway.jvm
        self.jvm.org.slf4j.LoggerFactory.getLogger("kelpie")  # Its appender takes the stderr it finds first.
        self._exits, self._hooks = self.jvm.java.util.ArrayList(), self.jvm.java.util.ArrayList()
        self._make_exit_throw()

    def close(self) -> None:
        self._gateway.shutdown()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()  # It ends with its standard input.
        self._process.stdout.close()
        self._process.wait(30)
        self._log.close()

    def command(self, main: str) -> list[str]:
        """How another JVM with the same jars is started."""
        libraries = fetch.libraries(RELEASE.version, RELEASE.jars)
        (py4j,) = (java.pyspark_jars() or Path()).glob("py4j-*.jar")
        return java.command(
            f"{libraries}/*:{py4j}",
            main,
            heap_mb=256,
            options=(
                *class_archive.options(libraries),
                f"-Dlog4j2.configurationFile={self._logging.as_uri()}",
                f"-Djava.io.tmpdir={self._logging.parent}",  # Codecs unpack libraries there, and leave them.
            ),
        )

    def tool(self, bootstrap: str, name: str, *arguments: str, stdin: str = "") -> Said:
        """Run one of the tools, by the name of its script."""
        main, arguments_ = releases.resolve_tool(
            RELEASE, name, arguments, bootstrap=bootstrap, zookeeper=None
        )
        system, streams = self.jvm.java.lang.System, self.jvm.java.io
        out, errors = streams.ByteArrayOutputStream(), streams.ByteArrayOutputStream()
        before = system.out, system.err
        system.setIn(streams.ByteArrayInputStream(stdin.encode()))
        system.setOut(streams.PrintStream(out, True))
        system.setErr(streams.PrintStream(errors, True))
        try:
            status = self._main(main, arguments_)
        finally:
            system.setOut(before[0])
            system.setErr(before[1])
        return Said(status, out.toString(), _TRACE_OF_EXIT.sub("", errors.toString()))

    def array(self, kind: Any, values: Iterable[object]) -> Any:
        values = list(values)
        array = self._gateway.new_array(kind, len(values))
        for at, value in enumerate(values):
            array[at] = value
        return array

    def properties(self, values: Mapping[str, object]) -> JavaObject:
        made = self.jvm.java.util.Properties()
        for name, value in values.items():
            made.setProperty(name, str(value))
        return made

    def _main(self, main: str, arguments: Iterable[str]) -> int:
        cls: Any = self.jvm
        for part in main.split("."):
            cls = getattr(cls, part)
        before = len(self._exits)
        try:
            cls.main(self.array(self.jvm.java.lang.String, arguments))
        except Py4JJavaError:
            if len(self._exits) == before:
                raise
        finally:
            while self._hooks:
                self._hooks.pop().run()
        # Some catch what we throw, and exit once more: the first exit is the one that counts.
        return self._exits[before] if len(self._exits) > before else 0

    def _make_exit_throw(self) -> None:
        """Kafka lets procedures be put in the place of an exit and of shutdown hooks. Without a compiler they
        are method handles: one notes the exit's status and throws, the other notes the hook.
        """
        lang, handles = self.jvm.java.lang, self.jvm.java.lang.invoke.MethodHandles
        method_type, named = lang.invoke.MethodType.methodType, lang.Class.forName
        text, number, nothing = named("java.lang.String"), lang.Integer.TYPE, lang.Void.TYPE
        thrown = named("java.util.concurrent.CancellationException")
        lookup = handles.publicLookup()

        def adder(notes: JavaObject, kind: JavaObject) -> JavaObject:
            anything = method_type(lang.Boolean.TYPE, named("java.lang.Object"))
            add = lookup.findVirtual(named("java.util.ArrayList"), "add", anything)
            return add.bindTo(notes).asType(method_type(nothing, kind))

        def procedure(name: str, handle: JavaObject) -> JavaObject:
            kind = named(f"org.apache.kafka.common.utils.Exit${name}")
            return lang.invoke.MethodHandleProxies.asInterfaceInstance(kind, handle)

        throw = handles.throwException(nothing, thrown)
        for step in (
            lookup.findConstructor(thrown, method_type(nothing, text)),
            lookup.findStatic(text, "valueOf", method_type(text, number)),
        ):
            throw = handles.filterArguments(throw, 0, self.array(lang.invoke.MethodHandle, [step]))
        leave = handles.foldArguments(throw, adder(self._exits, number))
        leave = handles.dropArguments(leave, 1, self.array(lang.Class, [text]))
        hook = adder(self._hooks, named("java.lang.Runnable"))
        hook = handles.dropArguments(hook, 0, self.array(lang.Class, [text]))

        ends = self.jvm.org.apache.kafka.common.utils.Exit
        ends.setExitProcedure(procedure("Procedure", leave))
        ends.setHaltProcedure(procedure("Procedure", leave))
        ends.setShutdownHookAdder(procedure("ShutdownHookAdder", hook))
