"""Requests to ingest data from the command line, Python or REST, and descriptions of the files to ingest."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from odfpy.chain.events import SourceState
from odfpy.coordinator.ingest.overrides import NOTHING, Overrides
from odfpy.data.timestamp import Instant, Timestamp
from odfpy.dataset.names import all_of
from odfpy.values import dataclass


@dataclass(frozen=True, slots=True)
class IngestRequest:
    """A request to ingest data into a push source.

    Attributes:
        ref: the dataset.
        files: files to ingest in this order, one commit each; a watch scans its folder instead.
        stdin: a stream to ingest after them.
        source_name: name of the push source, where there are several.
        event_time: event time of rows without one; the time of the ingest by default.
        input_format: format of the input if it differs from that of the source (csv, json, ndjson, parquet).
        branch: branch for the new blocks, instead of moving the head.
        overrides: exceptions to default checks.
    """

    ref: str
    files: tuple[Path, ...] = ()
    stdin: BinaryIO | None = None
    source_name: str | None = None
    event_time: Timestamp | None = None
    input_format: str | None = None
    branch: str | None = None
    overrides: Overrides = NOTHING

    @classmethod
    def of(
        cls,
        ref: str,
        files: str | Path | Sequence[str | Path] = (),
        *,
        event_time: Instant | None = None,
        allow_retractions: bool = False,
        **options: Any,
    ) -> IngestRequest:
        """Create a request from the arguments of `Workspace.ingest`; `options` are other fields.

        Args:
            ref: name or id of the dataset.
            files: the files.
            event_time: event time of rows without one.
            allow_retractions: whether a snapshot may retract any number of rows.
            options: other fields of the request.

        Raises:
            InvalidValue: the event time is invalid.
        """
        time = None if event_time is None else Timestamp.of(event_time)
        overrides = Overrides(retractions=allow_retractions)
        return cls(ref, tuple(map(Path, all_of(files))), event_time=time, overrides=overrides, **options)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to be ingested.

    Attributes:
        path: the path of its content.
        name: its name in messages.
        event_time: event time of rows without one.
        state: the source state after the ingest of this file.
        is_dated: whether the user has set the event time.
    """

    path: Path
    name: str
    event_time: Timestamp
    state: SourceState | None = None
    is_dated: bool = False

    @classmethod
    def dated(cls, path: Path, name: str, event_time: Timestamp | None, state: SourceState | None = None) -> SourceFile:
        """Return a file with the event time set by the user, or else with the current time.

        Args:
            path: the path of its content.
            name: its name in messages.
            event_time: event time of rows without one, None if the user has not set it.
            state: the source state after the ingest of this file.
        """
        return cls(path, name, event_time or Timestamp.now(), state, is_dated=event_time is not None)
