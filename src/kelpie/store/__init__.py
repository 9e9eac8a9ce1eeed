"""What earlier surveys saw, kept in one small file, so that the next one can see what has changed.

Kafka forgets: a group whose coordinator is dead is in no list any more. Who looked before remembers it. The
store keeps, for each cluster, the names of all groups that were seen, where each stood when it could last be
asked, and a few earlier surveys (states, committed offsets, ends of logs).

store     the file: opening, locking, mending
          (what is kept of a survey, and its encoding: `observations.earlier`)

It is a convenience, never a condition: whatever is wrong with the file, the doctor goes on without it, and
says so.
"""

from kelpie.store.store import Store, default_folder

__all__ = ["Store", "default_folder"]
