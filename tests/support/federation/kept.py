"""Forged answers: datasets like those of a kept answer, with something in them that was never signed."""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from odfpy.coordinator.workspace import Workspace
from odfpy.federation.evidence.answer_datasets import AnswerDatasets
from odfpy.federation.evidence.record import ATTACHMENT, AUDIENCE
from odfpy.federation.evidence.rows import SYSTEM
from odfpy.federation.execution.plan import plain_json
from odfpy.federation.relay.requesters import Credentials
from odfpy.query.query import Query

Change = Callable[[pa.Table], pa.Table]
_NUMBERS = itertools.count()


def attachment(workspace: Workspace, name: str) -> dict[str, Any]:
    """Return the record of an answer, with its signature."""
    found = workspace.datasets.state(name).attachments
    assert found is not None
    [one] = found.attachments.items
    assert one.path == ATTACHMENT
    tree: dict[str, Any] = json.loads(one.content)
    return tree


def rows_in(workspace: Workspace, name: str) -> pa.Table:
    """Return the rows of a dataset, without the system's columns."""
    return workspace.queries.sql(Query(f'SELECT * FROM "{name}"', "datafusion")).drop_columns(list(SYSTEM))


def signature(record: dict[str, Any], credentials: Credentials, iat: int = 1_700_000_000) -> str:
    """Return the signature of the alleged author of a record."""
    digest = hashlib.sha3_256(plain_json(record).encode()).hexdigest()
    return credentials.signed({"aud": AUDIENCE, "iat": iat, "query": record["query"], "hash": digest})


class Forger:
    """Makes answers like a kept one, but for something.

    Attributes:
        record: record of the copied answer; each forgery starts from it.
    """

    def __init__(self, workspace: Workspace, name: str, credentials: Credentials, iat: int) -> None:
        self.workspace = workspace
        self._name, self._credentials, self._iat = name, credentials, iat
        self._signed = attachment(workspace, name)
        self.record = self._signed["record"]

    def forge(
        self,
        change: Callable[[dict[str, Any]], object] | None = None,
        *,
        rows: Change | None = None,
        parts: Change | None = None,
        fragment: str = "f1",
        by: Credentials | None = None,
    ) -> str:
        """Create a forged answer, signed like the true one; return its name.

        Args:
            change: changes the record, which is signed again then.
            rows: change of the rows of the answer.
            parts: change of the rows of the parts of a fragment.
            fragment: the fragment.
            by: signer of the record.
        """
        name = f"forged.{next(_NUMBERS)}"
        tree = copy.deepcopy(self._signed)
        record = tree["record"]
        if change is not None:
            change(record)
        if parts is not None:
            taken = parts(rows_in(self.workspace, record["datasets"][fragment]["id"]))
            record["datasets"][fragment] = {"id": self._made(f"{name}.parts.1", taken), "name": f"{name}.parts.1"}
        if record != self._signed["record"]:
            tree["signature"] = signature(record, by or self._credentials, self._iat)
        table = rows_in(self.workspace, self._name)
        self._made(name, table if rows is None else rows(table), json.dumps(tree))
        return name

    def _made(self, name: str, table: pa.Table, text: str | None = None) -> str:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.parquet"
            pq.write_table(table, path)
            return AnswerDatasets(self.workspace, name).make(name, "forged", path, text)


def changed(column: str, value: Any, row: int = 0) -> Change:
    """Replace the value of one cell."""

    def change(table: pa.Table) -> pa.Table:
        values = table[column].to_pylist()
        values[row] = value
        at = table.schema.get_field_index(column)
        return table.set_column(at, table.schema.field(at), pa.array(values, table.schema.field(at).type))

    return change
