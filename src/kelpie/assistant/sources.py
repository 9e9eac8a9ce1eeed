"""What an assistant may ask about: what the server was started with, by name, and nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from kelpie.client.settings import Settings
from kelpie.model.kelpie_error import KelpieError
from kelpie.model.quoting import harmless
from kelpie.model.words import listed
from kelpie.places import Place

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Sources:
    clusters: dict[str, Settings] = field(default_factory=dict)
    evidence: dict[str, Path] = field(default_factory=dict)
    tables: dict[str, Place] = field(default_factory=dict)

    def settings(self, name: str) -> Settings:
        """Raises KelpieError."""
        return self._one(self.clusters, name, "cluster")

    def folder(self, name: str) -> Path:
        """Of evidence. Raises KelpieError."""
        return self._one(self.evidence, name, "cluster or folder of evidence")

    def lake(self, name: str) -> Place:
        """Raises KelpieError."""
        return self._one(self.tables, name, "folder of tables")

    @staticmethod
    def _one(known: Mapping[str, T], name: str, kind: str) -> T:
        if name not in known:
            raise KelpieError(
                f"There is no {kind} {harmless(name)!r} here. Known: {listed(list(known)) or 'none'}. Only "
                "what this server was started with can be asked."
            )
        return known[name]
