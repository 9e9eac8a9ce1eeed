"""Which groups keep their labels over midnight: days are made one by one, and need a look at the next one."""

import hashlib

import pyarrow as pa
import pyarrow.compute as pc

_SERIES = ("broker", "topic", "partition", "group")


def going_on(closing: pa.Table, opening: pa.Table) -> pa.Array:
    """Keys of the series that have grown from the last scrape of a day to the first one of the next day.

    A broker that was started in between (a series is gone, or has become smaller) has none.
    """
    last = _last_scrapes(closing)
    both = last.join(opening, list(_SERIES), join_type="left outer", right_suffix="_after")
    fell = pc.fill_null(pc.less(both["messages_after"], both["messages"]), True)
    restarted = pc.unique(both.filter(fell)["broker"])
    grew = pc.fill_null(pc.greater(both["messages_after"], both["messages"]), False)
    kept = pc.and_(grew, pc.invert(pc.is_in(both["broker"], value_set=restarted)))
    return _keys(both.filter(kept))


def _last_scrapes(samples: pa.Table) -> pa.Table:
    ends = samples.group_by("broker").aggregate([("at", "max")])
    last = samples.join(ends, "broker")
    return last.filter(pc.equal(last["at"], last["at_max"])).select([*_SERIES, "messages"])


def _keys(rows: pa.Table) -> pa.Array:
    columns = [rows[name].cast(pa.string()) for name in _SERIES]
    keys = pc.binary_join_element_wise(*columns, "\0")
    return keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys


def digest(keys: pa.Array) -> str:
    """What stands for them, in whatever order they are."""
    return hashlib.sha256("\1".join(sorted(keys.to_pylist())).encode()).hexdigest()


def settled(deltas: pa.Table, keys: pa.Array) -> pa.Table:
    """Rows of unattributed_traffic; groups of which it was open are steady if they are among the keys."""
    deltas = deltas.combine_chunks()
    place = deltas.schema.get_field_index("beside")
    beside = deltas["beside"]
    lists = beside.chunk(0) if isinstance(beside, pa.ChunkedArray) and beside.num_chunks else beside
    if not deltas.num_rows or not lists.flatten().field("is_steady").null_count:
        return deltas
    of, values = pc.list_parent_indices(lists), lists.flatten()
    rows = (
        deltas.select(["broker", "topic", "partition"]).take(of).append_column("group", values.field("group"))
    )
    known = pc.coalesce(values.field("is_steady"), pc.is_in(_keys(rows), value_set=keys))
    made = pa.StructArray.from_arrays(
        [values.field("group"), values.field("messages"), known], fields=list(values.type)
    )
    return deltas.set_column(
        place, deltas.schema.field(place), pa.ListArray.from_arrays(_offsets(lists), made).cast(lists.type)
    )


def _offsets(lists: pa.ListArray) -> pa.Array:
    return pc.subtract(lists.offsets, lists.offsets[0])
