"""Signed statements of what a recipient reads: the rows of a version of a shared table, bound to a block and a key.

A statement is a document like an answer with a proof (`odfpy.query.wire.verification`). Its `input` names the table,
the version and, for a dataset that is visible completely, the block. Its `output` has the columns and an
order-independent hash of the rows. So a reader of the table can verify the received rows, whatever tool was used, and
an owner of a copy of the dataset can reproduce the rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odfpy.chain.revocations import KnownRevocations
from odfpy.codec.tree import TreeError, from_tree
from odfpy.data.multihash import Multihash
from odfpy.data.rows.rows_hash import RowsHasher
from odfpy.data.scalars import U64
from odfpy.dataset.identity import ActorId
from odfpy.errors import MalformedData, NotFound, SchemaError, UsageError
from odfpy.query.dialects import dialect_named
from odfpy.query.query import Query
from odfpy.query.service import QueryService
from odfpy.query.wire.request import DatasetState
from odfpy.query.wire.verification import (
    CommittedAnswer,
    MalformedAnswer,
    VerificationFailed,
    require_block,
    require_valid_key,
)
from odfpy.sharing.model import SharedView

if TYPE_CHECKING:
    import pyarrow as pa

_TABLE: Final = "sharedTable"
_UNCHANGED: Final = "Write the rows as they were read, with the types that they had."
_INDEX: Final = "__index_level_"  # pandas stores its index in columns of such names


@dataclass(frozen=True, slots=True)
class ReadTable:
    """The `input` of a statement: a version of a shared table as the recipient reads it.

    Attributes:
        shared_table: path of the table.
        table_id: UUID of the table.
        recipient: name of the recipient.
        version: number of the version.
        timestamp: time of the version.
        shown: for a dataset, its current state or its changelog.
        dataset: the dataset and its block, if all of it is visible to the recipient.
    """

    shared_table: str
    table_id: str
    recipient: str
    version: U64
    timestamp: str
    shown: SharedView | None = None
    dataset: DatasetState | None = None


@dataclass(frozen=True, slots=True)
class RowsOfTable:
    """The `output` of a statement.

    Attributes:
        schema_string: the columns, in the protocol's form.
        num_rows: number of rows.
        rows_hash: hash of the rows (`odfpy.data.rows.rows_hash`).
    """

    schema_string: str
    num_rows: U64
    rows_hash: Multihash

    @classmethod
    def of(cls, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> RowsOfTable:
        """Read rows, and return their number and hash.

        Args:
            schema: columns for clients.
            batches: the rows, with these columns.
        """
        from odfpy.sharing.files.schema import schema_string

        with RowsHasher() as hasher:
            for batch in batches:
                hasher.update(batch)
            return cls(schema_string(schema), hasher.num_rows, hasher.finish())


@dataclass(frozen=True, slots=True)
class Statement:
    """A signed statement about the rows of a shared table.

    Attributes:
        document: the complete document, with its signature.
        table: its `input`.
        rows: its `output`.
    """

    document: CommittedAnswer
    table: ReadTable
    rows: RowsOfTable

    @classmethod
    def of(cls, document: CommittedAnswer) -> Statement | None:
        """Parse a document as a statement; None if it is an answer to a query.

        Raises:
            MalformedAnswer: the document is neither.
        """
        if not isinstance(document.request, dict) or _TABLE not in document.request:
            return None
        try:
            table: ReadTable = from_tree(ReadTable, document.request, ("input",))
            rows: RowsOfTable = from_tree(RowsOfTable, document.output, ("output",))
        except TreeError as error:
            raise MalformedAnswer(error.message, hint=error.hint) from error
        return cls(document, table, rows)

    def check(
        self,
        service: QueryService | None,
        *,
        revoked: KnownRevocations,
        signer: ActorId | None = None,
        arrived: Path | None = None,
    ) -> bool:
        """Verify the signature, and compare the statement with received rows, and with the dataset if it exists here.

        Args:
            service: query service with local datasets; None if there are none.
            revoked: known revocations of keys.
            signer: required signer; None for any.
            arrived: Parquet file or folder of rows received by a client; None for none.

        Returns:
            Whether the dataset exists here, and gives the same rows.

        Raises:
            InvalidCommitment, WrongSigner: the signature does not match.
            EndedKey: the key is no longer valid.
            VerificationFailed: the rows differ, or there is nothing to compare with.
            SchemaError: the received rows cannot be compared.
            OdfError: rows cannot be read.
        """
        from odfpy.sharing.files.schema import as_shared

        self.document.check_signature(signer)
        state = self.table.dataset
        require_valid_key(self.document.proof.signer, revoked, [] if state is None else [state], service)
        if arrived is not None:
            self._compare(str(arrived), _arrived(arrived, self._schema()))
        if state is None or service is None:
            if arrived is None:
                raise UsageError(
                    "There are no rows to compare the statement with",
                    hint="Pass the rows that you have read: --rows FILE.parquet",
                )
            return False
        try:
            require_block(service, state)
        except VerificationFailed:
            if arrived is None:
                raise
            return False
        with service.run(self._query(state)) as answer:
            rows = (as_shared(batch, self._schema()) for batch in answer)
            self._compare(f"{state.id} at block {state.block_hash}", rows)
        return True

    def _query(self, state: DatasetState) -> Query:
        """Return the query that reproduces the rows, independently of how they are served."""
        dialect = dialect_named("datafusion").name
        if self.table.shown is SharedView.CHANGELOG:
            pins = {} if state.block_hash is None else {state.id: state.block_hash}
            return Query(f"SELECT * FROM odf_changelog('{state.id}')", dialect, pins)  # noqa: S608
        return Query(f"SELECT * FROM odf_as_at('{state.id}', '{state.block_hash}')", dialect)  # noqa: S608

    def _schema(self) -> pa.Schema:
        from odfpy.sharing.files.schema import arrow_schema

        try:
            return arrow_schema(self.rows.schema_string)
        except SchemaError as error:
            raise MalformedAnswer(f"output.schemaString: {error.message}") from error

    def _compare(self, what: str, batches: Iterable[pa.RecordBatch]) -> None:
        found = RowsOfTable.of(self._schema(), batches)
        if found.rows_hash == self.rows.rows_hash:
            return
        counts = "" if found.num_rows == self.rows.num_rows else f": {found.num_rows} instead of {self.rows.num_rows}"
        raise VerificationFailed(
            "OutputMismatch",
            f"{what} has other rows than version {self.table.version} of {self.table.shared_table} as it was"
            f" signed{counts}",
            "The whole version must have been read, without a limit or condition. The signer of the statement is"
            " bound to it.",
            expected_hash=str(self.rows.rows_hash),
            actual_hash=str(found.rows_hash),
        )


def _arrived(path: Path, schema: pa.Schema) -> Iterable[pa.RecordBatch]:
    """Read the rows of a Parquet file or folder written by a client, cast to the types of the table."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    from odfpy.data.slices.parquet_io import INT96_UNIT
    from odfpy.sharing.files.schema import as_shared

    if not path.exists():
        raise NotFound(f"No such file: {path}")
    try:
        dataset = ds.dataset(path, format=ds.ParquetFileFormat(coerce_int96_timestamp_unit=INT96_UNIT))
        names = [name for name in dataset.schema.names if not name.startswith(_INDEX)]
        wrong = sorted({*schema.names} ^ {*names})
        if wrong:
            raise SchemaError(
                f"{path} and the table differ in the column {wrong[0]!r}",
                hint=f"The columns of the table are {', '.join(schema.names)}; write all of them.",
            )
        for batch in dataset.to_batches(columns=schema.names):
            try:
                rows = as_shared(batch, schema, is_exact=True)
            except SchemaError as error:
                raise MalformedData(f"{path} cannot be compared: {error.message}", hint=_UNCHANGED) from error
            yield rows
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise MalformedData(f"{path} cannot be compared: {error}", hint="It must be Parquet.") from error
