"""`import kelpie`: which names it has, what they cost, and that both ways to call them are the same."""

import ast
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import kelpie
from kelpie import aio, api

SOURCES = Path(api.__file__).parent


def test_importing_kelpie_imports_nothing_else() -> None:
    """Commands import it first, and have to start at once."""
    command = [sys.executable, "-c", "import kelpie, sys; print(*sys.modules)"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    modules = done.stdout.split()
    assert [name for name in modules if name.startswith("kelpie")] == ["kelpie"]
    assert "asyncio" not in modules


@pytest.mark.parametrize("name", api.__all__)
def test_every_name_is_there(name: str) -> None:
    """Whether it is imported by its own name or found as an attribute."""
    assert getattr(kelpie, name) is getattr(api, name)
    assert name in dir(kelpie)


def test_no_name_is_that_of_a_package() -> None:
    """`import kelpie.collect` would else replace the function of that name by the package."""
    packages = {module.name for module in pkgutil.iter_modules(kelpie.__path__)}
    assert packages.isdisjoint(api.__all__)


def test_a_name_that_is_not_there_is_told() -> None:
    """As of any module."""
    with pytest.raises(AttributeError, match="module 'kelpie' has no attribute 'nonsense'"):
        _ = kelpie.nonsense  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"module 'kelpie\.aio' has no attribute 'explain'"):
        _ = aio.explain  # type: ignore[attr-defined]


def test_both_ways_have_the_same_arguments_and_words() -> None:
    """One function, and no second description of it."""
    assert set(aio.__all__) == {*api.COROUTINES, *api.ITERATORS, *api.THREADED}
    for name in aio.__all__:
        waited, awaited = getattr(kelpie, name), getattr(aio, name)
        assert inspect.signature(waited) == inspect.signature(awaited), name
        assert waited.__doc__ == awaited.__doc__, name
        assert waited.__doc__, name
        assert not inspect.iscoroutinefunction(waited), name
        is_generator = inspect.isasyncgenfunction(awaited)
        assert is_generator == (name in api.ITERATORS), name
        assert inspect.iscoroutinefunction(awaited) != is_generator, name


@pytest.mark.parametrize("module", [api, aio])
def test_type_checkers_know_the_same_names(module: object) -> None:
    """They read a block that never runs; a name that is missing there would be unknown to them."""
    path = Path(str(getattr(module, "__file__")))  # noqa: B009
    (block,) = (
        node
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    declared: set[str] = set()
    for node in block.body:
        if isinstance(node, ast.ImportFrom):
            declared |= {name.asname or name.name for name in node.names}
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            declared.add(node.targets[0].id)
    assert set(getattr(module, "__all__")) <= declared  # noqa: B009
    public = {name for name in declared if not name.startswith("_")}
    assert public - set(getattr(module, "__all__")) <= {"waiting", "iterating", "in_thread"}  # noqa: B009


def test_types_reach_the_caller() -> None:
    """mypy reads this file: each line would be an error if a type got lost on its way through `kelpie`."""

    def unused(settings: kelpie.Settings) -> None:
        examined: kelpie.Examined = kelpie.examine(settings)
        findings: tuple[kelpie.Finding, ...] = tuple(examined.diagnosis.findings)
        places: list[kelpie.Whereabouts] = kelpie.where(settings, "a")
        planned: kelpie.PlannedRepair = kelpie.plan_reset("a:1", "g", kelpie.ToLatest())
        result: kelpie.RepairResult = kelpie.apply(planned)
        for look in kelpie.watch(kelpie.examination_of("a:1")):
            changes: kelpie.Changes | None = look.changes
            del changes
        kelpie.examine(nonsense=1)  # type: ignore[call-arg]
        del findings, places, result

    async def unused_too() -> None:
        examined: kelpie.Examined = await aio.examine("a:1")
        diagnosis: kelpie.Diagnosis = await aio.read_tables("tables")
        async for look in aio.watch(await aio.examination_of("a:1")):
            last: kelpie.Look = look
            del last
        del examined, diagnosis

    assert callable(unused)
    assert callable(unused_too)
