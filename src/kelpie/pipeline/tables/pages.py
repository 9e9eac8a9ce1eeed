"""The page of the tables, made of their declarations: `python -m kelpie.pipeline.tables.pages`."""

import sys
from pathlib import Path

import pyarrow as pa

from kelpie.pipeline.tables import BRONZE, GOLD, SILVER, LakeTable

_LAYERS = (
    ("bronze", "What was observed, as it was. Append only; a row names its source.", BRONZE),
    ("silver", "What follows from it, in order of time. Made anew where it has changed.", SILVER),
    ("gold", "What people ask for. Made anew where it has changed.", GOLD),
)
_HEAD = """# The tables

Made from the declarations in `src/kelpie/pipeline/tables` by `python -m kelpie.pipeline.tables.pages`.

Each is a Delta table in a folder of its own below the folder that `kelpie pipeline run --into` names,
`LAYER/NAME`, partitioned by `cluster`; those of traffic by group also by `day`. Times are in UTC. A column in
**bold** is never null. The key tells rows apart; in bronze, the same record read from several disks is
several rows with the same key, of which silver counts one.

A table evolves by new columns at its end, which may be null: readers of the old ones go on. Columns are never
renamed, dropped or given another type.
"""


def page() -> str:
    parts = [_HEAD]
    for layer, meaning, tables in _LAYERS:
        parts.append(f"## {layer.capitalize()}\n\n{meaning}\n")
        parts += map(_section, tables)
    return "\n".join(parts)


def _section(table: LakeTable) -> str:
    lines = [f"### {table.name}", "", table.meaning, "", f"Key: {', '.join(table.key)}", ""]
    lines += ["| column | type | meaning |", "|---|---|---|"]
    for column in table.columns:
        name = f"**{column.name}**" if column.required else column.name
        lines.append(f"| {name} | {_type(column.type)} | {column.meaning.replace('|', chr(92) + '|')} |")
    return "\n".join([*lines, ""])


def _type(kind: pa.DataType) -> str:
    """As SQL calls it."""
    if pa.types.is_list(kind):
        return f"array<{_type(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{_type(kind.key_type)}, {_type(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'{field.name}: {_type(field.type)}' for field in kind)}>"
    if pa.types.is_timestamp(kind):
        return "timestamp"
    names = {"int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint", "bool": "boolean"}
    return names.get(str(kind), str(kind))


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else "docs/tables.md").write_text(page(), encoding="utf-8")
