"""Kelpie runs nothing that it reads, and reads nothing from others without a limit.

Ruff's rules of bandit (S, in `make lint`) see calls by their usual names. Here is what they do not see:
imports, one-shot decompression, reads without a limit. Each exception is named, with its reason.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "bench", "demo", "website")

RUNS_CODE = frozenset(
    (
        "pickle",
        "_pickle",
        "cPickle",
        "cloudpickle",
        "dill",
        "jsonpickle",
        "joblib",
        "marshal",
        "shelve",
        "code",
    )
)
"""Modules: to read what they wrote is to run it."""
WEB_CLIENTS = frozenset(("requests", "httpx", "aiohttp", "urllib3"))
"""Modules: they read answers whole, and follow redirects with secrets, unless they are told otherwise."""
CALLS = frozenset(("eval", "exec", "compile", "__import__"))
METHODS = frozenset(
    ("os.system", "os.popen", "pandas.read_pickle", "pd.read_pickle", "yaml.load", "pty.spawn")
)
ARCHIVES = frozenset(("extractall", "extract", "unpack_archive"))
"""They write where the archive says. `evidence.archives` reads members under names of its own."""
WHOLE = frozenset(("read_text", "read_bytes", "readall", "readlines"))
ONE_SHOT = frozenset(
    f"{module}.decompress" for module in ("zlib", "gzip", "bz2", "lzma", "zstd", "zstandard")
)

_OWN = "a file of this package"
_KERNEL = "a file of the kernel's"
_STATE = "a file of the user's own state folder, which only the user can write"
_GIVEN = "a file that the user has named, to be used as a whole"
_LAKE = "beside the tables, of whoever may write them; its size is that of the files it lists"
_PAGES = "pages of this project's documentation, and what was made of them"
_OUTPUT = "what a process that was started here has printed"

EXCEPTIONS: dict[tuple[str, str], str] = {
    (
        "src/kelpie/wire/compiler/source.py",
        "exec",
    ): "source that the compiler itself made of declared schemas",
    ("src/kelpie/wire/compiler/source.py", "compile"): "the same",
    (
        "src/kelpie/web/otlp.py",
        "requests",
    ): "what the exporter of OpenTelemetry sends with: short answers, no redirects",
    ("src/kelpie/web/otlp.py", "requests.adapters"): "the same",
    ("src/kelpie/acknowledgements.py", "read_text"): _STATE,
    ("src/kelpie/cli/ack.py", "read_text"): _GIVEN,
    ("src/kelpie/cli/pipeline_stream.py", "read_bytes"): _GIVEN,
    ("src/kelpie/client/profiles.py", "read_text"): "the user's own configuration",
    (
        "src/kelpie/cli/reference.py",
        "read_text",
    ): "a page of this project's documentation, which it writes anew",
    ("src/kelpie/cli/simulate_zookeeper_rebalance.py", "read_bytes"): _GIVEN,
    ("src/kelpie/cli/spark_session.py", "read_text"): _OUTPUT,
    ("src/kelpie/client/properties.py", "read_bytes"): _GIVEN,
    ("src/kelpie/client/stores.py", "read_bytes"): _GIVEN,
    ("src/kelpie/evidence/logs/templates.py", "read_text"): _OWN,
    ("src/kelpie/guard/process.py", "read_text"): _KERNEL,
    ("src/kelpie/lab/broker_log.py", "read_text"): _OWN,
    ("src/kelpie/lab/scenarios/static_member_fenced.py", "read_text"): _OUTPUT,
    ("src/kelpie/pipeline/code_version.py", "read_bytes"): _OWN,
    ("src/kelpie/pipeline/decoding/compiled.py", "read_bytes"): _OWN,
    ("src/kelpie/pipeline/sources/logs/progress.py", "read_bytes"): _LAKE,
    (
        "src/kelpie/pipeline/sources/logs/ranges.py",
        "read",
    ): "counts the rest of a range of a file, piece by piece",
    ("src/kelpie/pipeline/sources/logs/rows.py", "read_text"): _LAKE,
    ("src/kelpie/pipeline/spark/shipping.py", "read_bytes"): _OWN,
    ("src/kelpie/pipeline/storage/changes.py", "read_text"): _LAKE,
    ("src/kelpie/pipeline/storage/journal.py", "read_text"): _LAKE,
    ("src/kelpie/pipeline/stream.py", "read_text"): _LAKE,
    ("src/kelpie/real/class_archive.py", "read_text"): _OUTPUT,
    ("src/kelpie/real/cluster.py", "read_text"): _OUTPUT,
    ("src/kelpie/real/identity.py", "read_text"): _KERNEL,
    ("src/kelpie/real/kraft_storage.py", "read_bytes"): "in the cache, which only the user can write",
    ("src/kelpie/real/ports.py", "read_text"): _KERNEL,
    ("src/kelpie/real/process.py", "read"): _OUTPUT,
    ("src/kelpie/real/releases.py", "read_text"): _OWN,
    ("src/kelpie/real/state.py", "read_text"): _STATE,
    ("src/kelpie/repair/change_records.py", "read_text"): _STATE,
    ("src/kelpie/repair/offset_sources.py", "read_text"): _GIVEN,
    ("src/kelpie/repair/reassign.py", "read_text"): _GIVEN,
    ("src/kelpie/repair/shown_plans.py", "read_text"): _STATE,
    ("src/kelpie/lab/scenarios/stage.py", "read"): "a function of that name, which asks the lab",
    ("src/kelpie/web/catalogue.py", "read_bytes"): _OWN,
    ("src/kelpie/web/translation/__init__.py", "read_bytes"): _OWN,
    ("src/kelpie/web/translation/extraction.py", "read_text"): _OWN,
    ("src/kelpie/cli/lab.py", "readline"): "what the user types",
    ("bench/__main__.py", "read_text"): "the page of benchmarks",
    ("bench/fleet.py", "read_text"): "the page of what a fleet costs",
    ("bench/rounds.py", "read_text"): "what this benchmark wrote itself",
    ("bench/pipeline_logs.py", "readline"): "a file of this project",
    ("bench/web.py", "readline"): _OUTPUT,
    ("src/kelpie/places/credentials.py", "read_bytes"): _GIVEN,
    ("src/kelpie/places/remote.py", "read"): _LAKE,
    ("src/kelpie/places/remote.py", "read_bytes"): _LAKE,
    ("website/build.py", "read_text"): _PAGES,
    ("website/links.py", "read_text"): _PAGES,
    ("website/navigation.py", "read_text"): _PAGES,
    ("bench/tree.py", "read"): _OUTPUT,
    ("bench/tree.py", "read_text"): _KERNEL,
}


def _dangers(source: str) -> Iterator[tuple[str, int]]:
    """What a module imports or calls that is forbidden, and the line."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        elif isinstance(node, ast.Call):
            yield from ((name, node.lineno) for name in _called(node))
            continue
        else:
            continue
        forbidden = RUNS_CODE | WEB_CLIENTS
        yield from ((name, node.lineno) for name in names if name.partition(".")[0] in forbidden)


def _called(node: ast.Call) -> Iterator[str]:
    if any(word.arg == "shell" and not _is_false(word.value) for word in node.keywords):
        yield "shell=True"
    if any(word.arg == "allow_pickle" and not _is_false(word.value) for word in node.keywords):
        yield "allow_pickle=True"
    if isinstance(node.func, ast.Name):
        name = node.func.id
        if name in CALLS or (name == "read" and not node.args):
            yield name
        elif name == "import_module" and node.args:
            yield from _module(node.args[0])
    elif isinstance(node.func, ast.Attribute):
        whole, name = ast.unparse(node.func), node.func.attr
        if whole in METHODS or whole in ONE_SHOT:
            yield whole
        elif name in ARCHIVES | WHOLE or (name in ("read", "readline") and _is_unlimited(node)):
            yield name
        elif name == "import_module" and node.args:
            yield from _module(node.args[0])


def _module(name: ast.expr) -> Iterator[str]:
    if isinstance(name, ast.Constant) and str(name.value).partition(".")[0] in RUNS_CODE:
        yield str(name.value)


def _is_false(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is False


def _is_unlimited(node: ast.Call) -> bool:
    if node.keywords:
        return False
    if not node.args:
        return True
    return isinstance(node.args[0], ast.UnaryOp) or (
        isinstance(node.args[0], ast.Constant) and node.args[0].value is None
    )


def _found() -> dict[tuple[str, str], list[int]]:
    found: dict[tuple[str, str], list[int]] = {}
    for folder in FOLDERS:
        for path in sorted(ROOT.glob(f"{folder}/**/*.py")):
            name = str(path.relative_to(ROOT))
            for danger, line in _dangers(path.read_text(encoding="utf-8")):
                found.setdefault((name, danger), []).append(line)
    return found


def test_nothing_runs_what_it_reads_and_nothing_is_read_without_a_limit() -> None:
    """A new exception belongs into the list above, with a reason that holds; an old one out of it."""
    found = _found()
    assert {place: lines for place, lines in found.items() if place not in EXCEPTIONS} == {}
    assert set(EXCEPTIONS) - found.keys() == set()


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from pickle import loads",
        "def f():\n    import cloudpickle.cloudpickle",
        "import importlib\nimportlib.import_module('marshal')",
        "from importlib import import_module\nimport_module('shelve')",
        "eval('1')",
        "exec(text)",
        "compile(text, 'x', 'exec')",
        "__import__(name)",
        "import os\nos.system('ls')",
        "subprocess.run('ls', shell=True)",
        "subprocess.run('ls', shell=flag)",
        "numpy.load(f, allow_pickle=True)",
        "archive.extractall(folder)",
        "archive.extract(member)",
        "import requests",
        "from aiohttp import ClientSession",
        "response.read()",
        "stream.readline()",
        "response.read(-1)",
        "response.read(None)",
        "path.read_text()",
        "path.read_bytes()",
        "zlib.decompress(data)",
    ],
)
def test_what_is_forbidden_is_seen(source: str) -> None:
    """A test that sees nothing forbids nothing."""
    assert list(_dangers(source))


@pytest.mark.parametrize(
    "source", ["response.read(10)", "subprocess.run(['ls'])", "re.compile('x')", "ast.literal_eval(text)"]
)
def test_what_is_harmless_is_not(source: str) -> None:
    """Else the list would hide what matters."""
    assert not list(_dangers(source))
