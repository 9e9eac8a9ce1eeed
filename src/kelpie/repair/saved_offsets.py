"""Saving committed offsets to a file before a repair changes or deletes them."""

from collections.abc import Mapping
from pathlib import Path

from kelpie.client.survey import wall_clock
from kelpie.model.names import TopicPartition
from kelpie.model.words import counted
from kelpie.repair import offsets_file
from kelpie.repair.applying import Action
from kelpie.repair.plan import NOTHING_CHANGES, Step
from kelpie.repair.undo_files import undo_file, write_whole


def saving(group: str, offsets: Mapping[TopicPartition, int]) -> tuple[Path, Step, Action]:
    """The file, which kelpie reset --from-file reads; the step of a plan; and what does it."""
    file = undo_file(group, wall_clock(), ".csv")

    async def save() -> str:
        write_whole(file, offsets_file.write(offsets))
        return f"{counted(len(offsets), 'offset')} saved to {file}."

    return (
        file,
        Step(f"Save what is committed now to {file}", "A file on this machine.", NOTHING_CHANGES),
        save,
    )
