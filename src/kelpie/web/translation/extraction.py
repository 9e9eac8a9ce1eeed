"""Finds the sentences that modules make, as templates, in their source: constants, f-strings, their sums."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from kelpie.web.translation.notation import Choice, Hole, Part, written

_LETTER = re.compile(r"[A-Za-z]")
_ANYTHING, _NUMBER = Hole(0), Hole(0, is_numeric=True)
_UNSPOKEN_METHODS = frozenset(
    [
        "compile",
        "startswith",
        "endswith",
        "partition",
        "rpartition",
        "split",
        "removeprefix",
        "removesuffix",
        "replace",
        "strip",
        "rstrip",
        "lstrip",
        "get",
        "strftime",
        "encode",
        "decode",
        "index",
        "count",
        "find",
        "info",
        "debug",
        "setdefault",
        "kelpie",
        "kafka",
        "kafka_at",
        "zookeeper_shell",
        "metrics",
        "topic",
        "broker",
        "offsets_topic",
        "setting",
    ]
)
_UNSPOKEN_FUNCTIONS = frozenset(
    ["getattr", "NewType", "TypeVar", "field", "namedtuple", "describing", "N_", "gettext"]
)
"""Functions whose texts are patterns, keys, commands, or messages of pages (`web/catalogue.py`)."""
_UNSPOKEN_KEYWORDS = {"cause", "check", "name", "key", "errors", "encoding", "sep", "code", "said_by"}


def templates(path: Path) -> Iterator[str]:
    """What a module may say, in the order of its source."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    finder = _Finder()
    finder.visit(tree)
    yield from dict.fromkeys(finder.found)


class _Finder(ast.NodeVisitor):
    def __init__(self) -> None:
        self.found: list[str] = []

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # A docstring is not said.
            self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        pass

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.visit(node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_arg(self, node: ast.arg) -> None:
        pass

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for each in [*node.args.defaults, *node.args.kw_defaults, *node.body]:
            if each is not None:
                self.visit(each)

    def visit_Assert(self, node: ast.Assert) -> None:
        pass

    def visit_Dict(self, node: ast.Dict) -> None:
        for value in node.values:
            self.visit(value)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg not in _UNSPOKEN_KEYWORDS:
            self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        is_method = isinstance(node.func, ast.Attribute)
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in ("counted", "numbered"):
            self._count(node, called)
            return
        if isinstance(node.func, ast.Attribute) and not isinstance(node.func.value, ast.Constant):
            self.visit(node.func.value)
        if called not in (_UNSPOKEN_METHODS if is_method else _UNSPOKEN_FUNCTIONS):
            for each in [*node.args, *node.keywords]:
                self.visit(each)

    def _count(self, node: ast.Call, called: str) -> None:
        """As `model.words.counted` and `numbered` write it."""
        words = [
            each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)
        ]
        for each in node.args:
            if not isinstance(each, ast.Constant):
                self.visit(each)
        if words:
            one, many = words[0], words[1] if len(words) > 1 else f"{words[0]}s"
            noun = f"{{a:{one}|{many}}}"
            self.found.append(f"{{0#}} {noun}" if called == "counted" else f"{noun} {{0}}")

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self._keep(_with_holes(node.value))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        self._keep(self._parts(node))

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if isinstance(node.op, ast.Add) and _is_text(node):
            self._keep(self._parts(node))
        else:
            self.generic_visit(node)

    def _parts(self, node: ast.expr) -> list[Part]:
        """Holes have no number yet. What is said inside of holes is found by itself."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return [node.value]
        if isinstance(node, ast.JoinedStr):
            return [part for value in node.values for part in self._parts(value)]
        if isinstance(node, ast.FormattedValue):
            if isinstance(node.value, ast.IfExp):
                return self._parts(node.value)
            self.visit(node.value)
            return [_NUMBER if _is_numeric(node) else _ANYTHING]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and _is_text(node):
            return [*self._parts(node.left), *self._parts(node.right)]
        if isinstance(node, ast.IfExp):
            options = _options(node)
            if options is not None:
                return [Choice("", tuple(dict.fromkeys(options)))]
        return self._hole(node)

    def _hole(self, node: ast.expr) -> list[Part]:
        self.visit(node)
        return [_ANYTHING]

    def _keep(self, parts: list[Part]) -> None:
        text = written(_numbered(parts))
        for at, part in enumerate(parts):
            if isinstance(part, Choice) and _is_between_holes(parts, at):
                self.found += [option for option in part.options if _LETTER.search(option)]
        if any(_LETTER.search(part) for part in parts if isinstance(part, str)) or any(
            isinstance(part, Choice) for part in parts
        ):
            self.found.append(text)


def _with_holes(text: str) -> list[Part]:
    """What `str.format` fills later has holes, too."""
    parts: list[Part] = []
    for part in text.split("{}"):
        parts += [part, _ANYTHING]
    return parts[:-1]


def _is_numeric(node: ast.FormattedValue) -> bool:
    """What has a format is a number, unless it is written in hexadecimal digits; so is a length."""
    is_length = isinstance(node.value, ast.Call) and getattr(node.value.func, "id", "") in ("len", "sum")
    return is_length or (node.format_spec is not None and "x" not in ast.unparse(node.format_spec))


def _is_text(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _is_text(node.left) or _is_text(node.right)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _options(node: ast.expr) -> list[str] | None:
    """The words of which one is chosen, if all are constants."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.IfExp):
        one, other = _options(node.body), _options(node.orelse)
        return None if one is None or other is None else [*one, *other]
    return None


def _is_between_holes(parts: list[Part], at: int) -> bool:
    return 0 < at < len(parts) - 1 and isinstance(parts[at - 1], Hole) and isinstance(parts[at + 1], Hole)


def _numbered(parts: list[Part]) -> list[Part]:
    """Holes side by side are one. A choice between two holes is a hole."""
    whole = [part for part in parts if part != ""]
    done: list[Part] = []
    holes = choices = 0
    for at, part in enumerate(whole):
        if isinstance(part, Hole) or (isinstance(part, Choice) and _is_between_holes(whole, at)):
            if done and isinstance(done[-1], Hole):
                done[-1] = Hole(done[-1].number)
                continue
            done.append(Hole(holes, isinstance(part, Hole) and part.is_numeric))
            holes += 1
        elif isinstance(part, Choice):
            done.append(Choice(chr(ord("a") + choices), part.options))
            choices += 1
        else:
            done.append(part)
    return done
