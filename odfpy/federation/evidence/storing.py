"""Storing an answer: its rows, those of its parts and the relays' signatures become datasets of a workspace.

1. Statements are checked: a part counts as missing if its relay has not signed for the rows that were received.
2. The rows of the parts go into datasets, and are read back from there.
3. The rest of the query runs over them; its result is the answer.
4. The requester signs the record, which is attached to the answer.
5. Everything is verified, exactly as in any later verification. Only then is the answer given its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from odfpy import __version__
from odfpy.engine.cancellation import CancellationToken
from odfpy.errors import UsageError
from odfpy.federation.errors import AnswerNotKept, AuthenticationFailed
from odfpy.federation.evidence.answer_datasets import AnswerDatasets
from odfpy.federation.evidence.recompute import AnswerRows, counted
from odfpy.federation.evidence.record import AnswerRecord, KeptPart, PartsDataset, signed_text
from odfpy.federation.evidence.rows import SYSTEM, PartFiles, batches_of, write_parts
from odfpy.federation.evidence.statements import Statements
from odfpy.federation.evidence.verifying import Verification, verify
from odfpy.federation.execution.answer import WebAnswer
from odfpy.federation.execution.execute import require_complete_answer
from odfpy.federation.execution.options import MEMORY
from odfpy.federation.execution.parts import ReadPart
from odfpy.federation.execution.plan import WebPlan
from odfpy.federation.relay.question import MissingRelay
from odfpy.federation.relay.requesters import Authorities, Credentials

if TYPE_CHECKING:
    from odfpy.coordinator.workspace import Workspace

_MAX_SQL_LENGTH: Final = 500
_UNSIGNED: Final = "Request signatures: with `--into`, or --later and --signed; in Python, signed=True."


def check_columns(plan: WebPlan) -> None:
    """Check that the columns of an answer can be those of a dataset.

    Args:
        plan: the query's plan.

    Raises:
        UsageError: a column has the name of a system column, or two have the same name.
    """
    names = plan.columns()
    for name in names:
        if name in SYSTEM:
            raise UsageError(
                f"A column of the answer is called {name}, as a column of every dataset",
                hint=f'Give it another name: SELECT ... AS "my_{name}".',
            )
        if names.count(name) > 1:
            raise UsageError(f"Two columns of the answer are called {name}", hint="Give one another name with AS.")


def store_answer(
    answer: WebAnswer,
    workspace: Workspace,
    name: str,
    credentials: Credentials,
    authorities: Authorities,
    *,
    require_complete: bool = False,
    memory: int = MEMORY,
) -> Verification:
    """Store an answer whose parts are signed, and verify it.

    Args:
        answer: the answer; its rows may already be consumed.
        workspace: the workspace that stores it.
        name: name of its dataset.
        credentials: credentials of the requester.
        authorities: authorities of the relays and of the requester.
        require_complete: whether it is an error if a relay is missing, or has signed other rows.
        memory: bytes that assembling the answer may use.

    Raises:
        AlreadyExists: the name is taken.
        UsageError: the answer is not signed, or has columns that no dataset can have.
        IncompleteAnswer: a relay is missing, and the answer must be complete.
        AnswerNotKept: it does not pass verification; everything is removed.
        OdfError: the datasets cannot be written; everything is removed.
    """
    datasets = AnswerDatasets(workspace, name)
    check_columns(answer.asked.plan)
    with ExitStack() as stack:
        inner = stack.enter_context(CancellationToken())
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="odf-web-")))
        stack.enter_context(datasets.held())
        keeper = _Keeper(datasets, answer, credentials, authorities, folder, memory, inner)
        keeper.choose_parts()
        require_complete_answer(keeper.missing, require_complete=require_complete)
        record = keeper.write()
        datasets.finish()
        return replace(record, name=datasets.name)


class _Keeper:
    def __init__(
        self,
        datasets: AnswerDatasets,
        answer: WebAnswer,
        credentials: Credentials,
        authorities: Authorities,
        folder: Path,
        memory: int,
        control: CancellationToken,
    ) -> None:
        self._datasets, self._answer, self._plan = datasets, answer, answer.asked.plan
        self._credentials, self._authorities = credentials, authorities
        self._folder, self._memory, self._control = folder, memory, control
        self._parts: list[ReadPart] = []
        self.missing = list(answer.missing)

    def choose_parts(self) -> None:
        """Run step 1: choose the parts whose statements are valid.

        Raises:
            UsageError: the query was run without signatures.
        """
        answer = self._answer
        if sum(len(asked.parts) for asked in answer.asked.answers.values()) > len(answer.parts):
            raise UsageError("The result of EXPLAIN cannot be stored", hint="Run the query without EXPLAIN.")
        read = [part for part in answer.parts if part.missing is None]
        if any(read_part.statement is None for read_part in read):
            raise UsageError("The relays have not signed their rows", hint=_UNSIGNED)
        statements = Statements(self._plan, self._credentials.fingerprint, self._authorities)
        for read_part in read:
            try:
                statements.take_with(read_part.fragment, read_part.statement or "", self._size(read_part))
            except AuthenticationFailed as error:
                self.missing.append(MissingRelay(read_part.part.relay, error.message))
            else:
                self._parts.append(read_part)

    def _size(self, part: ReadPart) -> tuple[int, str]:
        """Return the row count of a part and the hash of its rows; known already if just received."""
        if part.hash is not None:
            return part.rows, part.hash
        return counted(batches_of(part.paths, self._plan.fragments[part.fragment].schema))

    def write(self) -> Verification:
        """Run steps 2 to 5.

        Raises:
            AnswerNotKept: the answer cannot be verified.
        """
        datasets, files = {}, {}
        for number, name in enumerate(self._plan.fragments, 1):
            alias = self._datasets.parts(number)
            dataset_id = self._write_parts(alias, name)
            datasets[name] = PartsDataset(dataset_id, alias)
            files[name] = self._read_parts(dataset_id, name)
        path = self._folder / "answer.parquet"
        rows, digest = self._write_rest(path, files)
        record = AnswerRecord(
            software=f"odfpy {__version__}",
            requester=self._credentials.fingerprint,
            plan=self._plan,
            missing=tuple(dict.fromkeys(self.missing)),
            datasets=datasets,
            parts=tuple(KeptPart(part.fragment, part.statement or "") for part in self._parts),
            rows=rows,
            hash=digest,
        )
        what = f"Answer of a web of relays to: {self._plan.sql[:_MAX_SQL_LENGTH]}"
        attachment = signed_text(record, self._credentials)
        self._datasets.make(self._datasets.unfinished, what, path, attachment)
        return self._verified()

    def _write_parts(self, alias: str, fragment: str) -> str:
        """Run step 2; returns the id of the dataset."""
        path = self._folder / "parts.parquet"
        parts = ((number, part.paths) for number, part in enumerate(self._parts) if part.fragment == fragment)
        write_parts(path, self._plan.fragments[fragment].schema, parts)
        what = f"Parts of the answer {self._datasets.name}, as relays have given them"
        return self._datasets.make(alias, what, path)

    def _read_parts(self, dataset: str, fragment: str) -> list[Path]:
        numbers = [number for number, part in enumerate(self._parts) if part.fragment == fragment]
        part_files = PartFiles(fragment, self._plan.fragments[fragment].schema, numbers, self._folder)
        part_files.read(self._datasets.workspace, dataset, self._control)
        return part_files.paths

    def _write_rest(self, path: Path, files: Mapping[str, Sequence[Path]]) -> tuple[int, str]:
        """Run step 3; returns the number of rows and their hash."""
        with (
            AnswerRows(self._plan, files, self._memory, self._control) as rows,
            pq.ParquetWriter(path, rows.schema) as writer,
        ):
            return counted(_written(rows, writer))

    def _verified(self) -> Verification:
        """Run step 5."""
        datasets = self._datasets
        verified = verify(
            datasets.workspace, datasets.unfinished, self._authorities, memory=self._memory, control=self._control
        )
        if not verified.holds:
            raise AnswerNotKept(
                f"The answer could not be verified afterwards: {'; '.join(verified.findings)}",
                hint="The query must return the same rows each time: no random(), no now(), no LIMIT without an order. "
                "The file of authorities needs that of your certificate, too.",
            )
        return verified


def _written(rows: AnswerRows, writer: pq.ParquetWriter) -> Iterator[pa.RecordBatch]:
    for batch in rows:
        writer.write_batch(batch)
        yield batch
