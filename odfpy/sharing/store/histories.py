"""The served histories of datasets: the last block that was served as a shared table, and the first version number."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from odfpy.sharing.store.database import ConcurrentChange, Database
from odfpy.sharing.store.tables import SERVED_HISTORIES


@dataclass(frozen=True, slots=True)
class ServedHistory:
    """The latest served history of a dataset.

    Attributes:
        head: hash of the latest block that was served.
        sequence_number: sequence number of that block.
        base: number of the version before any data.
    """

    head: str
    sequence_number: int
    base: int


class ServedHistories:
    """Served histories in a database, for each dataset and each shared tag or branch of it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, dataset_id: str, at: str) -> ServedHistory | None:
        """Return the latest served history; None if none was served yet.

        Args:
            dataset_id: id of the dataset.
            at: tag or branch; empty for the head.

        Raises:
            SharingDatabaseError: the database cannot be read.
        """
        query = sa.select(SERVED_HISTORIES).where(*_key(dataset_id, at))
        with self._database.reading() as connection:
            row = connection.execute(query).first()
            return None if row is None else ServedHistory(row.head, row.sequence_number, row.base)

    def compare_and_swap(self, dataset_id: str, at: str, known: ServedHistory | None, new: ServedHistory) -> bool:
        """Replace a history if it still is the one that was read; return whether it was replaced.

        Args:
            dataset_id: id of the dataset.
            at: tag or branch; empty for the head.
            known: the history that was read.
            new: the history that is about to be served.

        Raises:
            SharingDatabaseError: the database cannot be written.
        """
        values = {"head": new.head, "sequence_number": new.sequence_number, "base": new.base}
        try:
            with self._database.writing() as connection:
                if known is None:
                    connection.execute(sa.insert(SERVED_HISTORIES).values(dataset_id=dataset_id, at=at, **values))
                    return True
                same = (SERVED_HISTORIES.c.head == known.head, SERVED_HISTORIES.c.base == known.base)
                update = sa.update(SERVED_HISTORIES).where(*_key(dataset_id, at), *same)
                return connection.execute(update.values(values)).rowcount == 1
        except ConcurrentChange:  # another process has inserted it first
            return False


def _key(dataset_id: str, at: str) -> tuple[sa.ColumnElement[bool], sa.ColumnElement[bool]]:
    return SERVED_HISTORIES.c.dataset_id == dataset_id, SERVED_HISTORIES.c.at == at
