"""The persistent state of a scheduler, `.odf/automation/state.db`, written before a run begins and after it ends.

jobs        the history of each job
runs        runs in progress, completed ones until they are in the log of runs, and the latest ones after that
requests    manually requested runs
late        datasets known to be late
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from odfpy.automation.due import JobHistory, JobKey, Reason
from odfpy.automation.errors import StateUnusable
from odfpy.automation.job_planner import Start
from odfpy.automation.runs import Run, RunResult
from odfpy.coordinator.schedules.schedule import Job
from odfpy.files import make_folder

_PATIENCE: Final = 10.0
_KEPT: Final = 1000
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS jobs (
    dataset TEXT, job TEXT, started REAL, attempt INTEGER, failures INTEGER, retry_at REAL, retry_reason TEXT,
    seen_rows INTEGER, tried TEXT, PRIMARY KEY (dataset, job));
CREATE TABLE IF NOT EXISTS runs (
    number INTEGER PRIMARY KEY, id TEXT UNIQUE, dataset TEXT, job TEXT, reason TEXT, due_at REAL, attempt INTEGER,
    is_request INTEGER, name TEXT, dataset_id TEXT, started REAL, seen_rows INTEGER, row TEXT, is_logged INTEGER);
CREATE INDEX IF NOT EXISTS unfinished ON runs (number) WHERE row IS NULL;
CREATE INDEX IF NOT EXISTS unlogged ON runs (number) WHERE NOT is_logged;
CREATE TABLE IF NOT EXISTS requests (id TEXT PRIMARY KEY, dataset TEXT, job TEXT, at REAL);
CREATE TABLE IF NOT EXISTS late (dataset TEXT PRIMARY KEY);
"""


class SchedulerState:
    """The database of a scheduler's state. An instance must be used by one thread."""

    def __init__(self, folder: Path) -> None:
        """
        Args:
            folder: the folder `automation` of the workspace; created if necessary.

        Raises:
            StateUnusable: the file cannot be opened, or is damaged.
        """
        self.path = folder / "state.db"
        try:
            make_folder(folder)
        except OSError as error:
            raise self._unusable(error.strerror or str(error)) from error
        with self._translating_errors():
            self._database = sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None)
            self._database.execute("PRAGMA synchronous = FULL")
            self._database.executescript(_SCHEMA)

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    # --- Runs ---

    def begin(self, run: Run, past: JobHistory) -> bool:
        """Record the start of a run; return whether it may start, since a requested run may have been withdrawn.

        Args:
            run: the run.
            past: new history of its job.
        """
        start, key = run.start, run.start.key
        with self._transaction() as database:
            taken = database.execute("DELETE FROM requests WHERE id = ?", (run.id,)).rowcount
            if start.request is not None and not taken:
                return False
            self._save_past(database, key, past)
            database.execute(
                "INSERT INTO runs VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, 0)",
                (
                    *(run.id, key.dataset, key.job.value, start.reason.value, start.due_at, start.attempt),
                    *(start.request is not None, run.name, run.dataset_id, run.started, run.seen_rows),
                ),
            )
        return True

    def end(self, run: Run, past: JobHistory, row: Mapping[str, Any]) -> None:
        """Record the end of a run.

        Args:
            run: the run.
            past: new history of its job.
            row: its row for the log of runs.
        """
        with self._transaction() as database:
            self._save_past(database, run.start.key, past)
            database.execute("UPDATE runs SET row = ? WHERE id = ? AND row IS NULL", (json.dumps(row), run.id))

    def unfinished(self) -> list[Run]:
        """Return the runs in progress, oldest first."""
        with self._translating_errors():
            found = self._database.execute("SELECT * FROM runs WHERE row IS NULL ORDER BY number").fetchall()
        return [_run_of(one) for one in found]

    def ended(self) -> list[dict[str, Any]]:
        """Return the rows of the latest completed runs, newest first."""
        with self._translating_errors():
            found = self._database.execute("SELECT row FROM runs WHERE row IS NOT NULL").fetchall()
        return sorted((json.loads(row) for (row,) in found), key=lambda row: (row["at"], row["id"]), reverse=True)

    def unlogged(self) -> list[dict[str, Any]]:
        """Return the rows of completed runs that may be missing in the log of runs."""
        with self._translating_errors():
            found = self._database.execute("SELECT row FROM runs WHERE NOT is_logged AND row IS NOT NULL").fetchall()
        return [json.loads(row) for (row,) in found]

    def logged(self, ids: list[str]) -> None:
        """Mark runs as logged; of logged runs, only the latest ones are retained.

        Args:
            ids: ids of the runs.
        """
        with self._transaction() as database:
            database.executemany("UPDATE runs SET is_logged = 1 WHERE id = ?", [(one,) for one in ids])
            database.execute(
                "DELETE FROM runs WHERE is_logged AND number <= (SELECT max(number) FROM runs) - ?", (_KEPT,)
            )

    def row(self, run_id: str) -> dict[str, Any] | None:
        """Return the row of a completed run, None if it is not completed.

        Args:
            run_id: id of the run.
        """
        with self._translating_errors():
            found = self._database.execute("SELECT row FROM runs WHERE id = ?", (run_id,)).fetchone()
        return None if found is None or found[0] is None else json.loads(found[0])

    # --- Jobs, requests, late datasets ---

    def pasts(self) -> dict[JobKey, JobHistory]:
        """Return the history of each job."""
        with self._translating_errors():
            found = self._database.execute("SELECT * FROM jobs").fetchall()
        return {
            JobKey(dataset, Job(job)): JobHistory(
                started=started,
                attempt=attempt,
                failures=failures,
                retry_at=retry_at,
                retry_reason=Reason(retry_reason),
                seen_rows=seen_rows,
                tried=tried,
            )
            for dataset, job, started, attempt, failures, retry_at, retry_reason, seen_rows, tried in found
        }

    def ask(self, request: str, key: JobKey, at: float) -> None:
        """Add a request for an immediate run of a job.

        Args:
            request: id of the requested run.
            key: the job.
            at: time of the request.
        """
        with self._transaction() as database:
            database.execute("INSERT INTO requests VALUES (?, ?, ?, ?)", (request, key.dataset, key.job.value, at))

    def requests(self) -> dict[str, JobKey]:
        """Return the requested runs that have not started."""
        with self._translating_errors():
            found = self._database.execute("SELECT id, dataset, job FROM requests ORDER BY at").fetchall()
        return {request: JobKey(dataset, Job(job)) for request, dataset, job in found}

    def withdraw(self, request: str) -> bool:
        """Withdraw a request; return whether its run had not started.

        Args:
            request: id of the requested run.
        """
        with self._transaction() as database:
            return database.execute("DELETE FROM requests WHERE id = ?", (request,)).rowcount > 0

    def late(self) -> set[str]:
        """Return the datasets that are known to be late."""
        with self._translating_errors():
            return {dataset for (dataset,) in self._database.execute("SELECT dataset FROM late")}

    def set_late(self, dataset: str, *, is_late: bool) -> None:
        """Record whether a dataset is late.

        Args:
            dataset: id of the dataset.
            is_late: whether the dataset is late.
        """
        statement = "INSERT OR IGNORE INTO late VALUES (?)" if is_late else "DELETE FROM late WHERE dataset = ?"
        with self._transaction() as database:
            database.execute(statement, (dataset,))

    # --- Helpers ---

    def _save_past(self, database: sqlite3.Connection, key: JobKey, past: JobHistory) -> None:
        database.execute(
            "INSERT OR REPLACE INTO jobs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(key.dataset, key.job.value, past.started, past.attempt, past.failures, past.retry_at),
                *(past.retry_reason.value, past.seen_rows, past.tried),
            ),
        )

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._translating_errors():
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield self._database
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise

    @contextmanager
    def _translating_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._unusable(str(error)) from error

    def _unusable(self, why: str) -> StateUnusable:
        return StateUnusable(
            f"The scheduler cannot use {self.path}: {why}",
            hint="Check the free space. If the file is damaged, remove it: past runs are in odf.runs, and intervals"
            " restart.",
        )


def _run_of(found: tuple[Any, ...]) -> Run:
    _, run_id, dataset, job, reason, due_at, attempt, is_request, name, dataset_id, started, seen_rows, _, _ = found
    request = run_id if is_request else None
    start = Start(JobKey(dataset, Job(job)), Reason(reason), due_at, attempt, request)
    return Run(run_id, start, name, dataset_id, started, seen_rows)


def result_of(row: Mapping[str, Any]) -> RunResult:
    """Return the result in a row of a run."""
    return RunResult(**{name: row[name] for name in RunResult.__dataclass_fields__})
