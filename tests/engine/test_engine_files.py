"""Files that requests name: a confined engine sees these."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from odfpy.data.multihash import Multihash
from odfpy.data.offset_interval import OffsetInterval
from odfpy.dataset.transform import TransformSql
from odfpy.engine import contract
from odfpy.engine.contract import (
    JobRequest,
    PreprocessRequest,
    PreprocessTable,
    SliceDescription,
    TransformRequest,
    TransformResponseSuccess,
)
from odfpy.engine.tracing import TraceRequest
from odfpy.engine.worker.files import RequestFiles, check_answer, files_of, peculiar_files
from odfpy.engine.worker.training import training_jobs
from odfpy.errors import EngineError

KNOWN = {
    "TransformRequestInput": ["data_paths", "schema_file", "history_paths"],
    "OutputSoFar": ["schema_file", "data_paths"],
    "TransformRequest": [
        "prev_checkpoint_path",
        "new_checkpoint_path",
        "new_data_path",
        "prev_arrangement_path",
        "new_arrangement_path",
    ],
    "InputSchema": ["schema_file"],
    "SqlTable": ["schema_file", "data_paths"],
    "SqlRequest": ["output_path"],
    "PreprocessTable": ["data_path"],
    "PreprocessRequest": ["output_path"],
    "JobRequest": ["folder"],
}


def test_all_fields_of_requests_that_name_files_are_known():
    """A new one: see that `files_of` knows it, then enter it here."""
    found = {}
    for kind in vars(contract).values():
        if dataclasses.is_dataclass(kind) and kind.__module__.startswith("odfpy.engine."):
            names = [field.name for field in dataclasses.fields(kind)]
            paths = [name for name in names if name.endswith(("_path", "_paths", "_file", "_files", "folder"))]
            if paths:
                found[kind.__name__] = paths
    assert found == KNOWN


def test_a_transform_reads_the_files_of_its_arrangement_if_there_are_any(tmp_path: Path):
    (request,) = (job for job in training_jobs(tmp_path) if isinstance(job, TransformRequest))
    place = tmp_path / "arrangement"
    given = dataclasses.replace(request, prev_arrangement_path=str(place), new_arrangement_path="/scratch/new")
    assert files_of(given).reads == files_of(request).reads, "it is a cache, and may have gone"
    place.mkdir()
    for name in ("manifest", "run-1"):
        (place / name).touch()
    assert set(files_of(given).reads) - set(files_of(request).reads) == {str(place / "manifest"), str(place / "run-1")}
    assert files_of(given).folders == (*files_of(request).folders, "/scratch")


def test_a_transform_reads_slices_history_schemas_and_checkpoint_and_writes_to_its_scratch_folder(tmp_path: Path):
    (request,) = (job for job in training_jobs(tmp_path) if isinstance(job, TransformRequest))
    first, second = request.query_inputs
    inputs = (dataclasses.replace(first, history_paths=("/history",)), second)
    files = files_of(dataclasses.replace(request, query_inputs=inputs, prev_checkpoint_path="/checkpoint"))
    assert set(files.reads) == {f"{tmp_path}/data.parquet", f"{tmp_path}/schema.parquet", "/history", "/checkpoint"}
    assert files.folders == (str(tmp_path),)


def test_a_trace_reads_slices_history_schemas_and_the_rows_that_are_wanted(tmp_path: Path):
    (request,) = (job for job in training_jobs(tmp_path) if isinstance(job, TransformRequest))
    first, second = request.query_inputs
    asked = TraceRequest(
        transform=request.transform,
        vocab=request.vocab,
        query_inputs=(dataclasses.replace(first, history_paths=("/history",)), second),
        wanted_path="/wanted",
        output_path=str(tmp_path / "answer"),
    )
    files = files_of(asked)
    assert set(files.reads) == {f"{tmp_path}/data.parquet", f"{tmp_path}/schema.parquet", "/history", "/wanted"}
    assert files.folders == (str(tmp_path),)


def test_other_requests():
    preprocess = PreprocessRequest(TransformSql("spark", query="x"), (PreprocessTable("t", "/c/0"),), "/c/result")
    assert files_of(preprocess) == RequestFiles(("/c/0",), ("/c",))
    assert files_of(JobRequest("m:f", "", "/s/../o", ("/i", "relative"))) == RequestFiles(
        ("/i", str(Path("relative").absolute())), ("/o",)
    )


def test_an_answer_leads_to_plain_files_of_the_request_only(tmp_path: Path):
    (tmp_path / "below").mkdir()
    (tmp_path / "old").symlink_to("/etc/passwd")
    files = RequestFiles((), (str(tmp_path),))
    before = peculiar_files(files.folders)
    (tmp_path / "data").write_text("rows")
    done = TransformResponseSuccess(slices=(described(tmp_path / "data"),))
    check_answer(files, before, done)
    with pytest.raises(EngineError, match="somewhere else: /etc/passwd"):
        check_answer(files, before, TransformResponseSuccess(slices=(described(Path("/etc/passwd")),)))
    with pytest.raises(EngineError, match="somewhere else"):
        check_answer(
            files, before, TransformResponseSuccess(slices=(described(tmp_path / "below" / ".." / ".." / "x"),))
        )
    for make in (lambda path: path.symlink_to("/etc"), os.mkfifo):
        make(tmp_path / "below" / "new")
        with pytest.raises(EngineError, match=r"not a file: .*/below/new"):
            check_answer(files, before, done)
        (tmp_path / "below" / "new").unlink()


def described(path: Path) -> SliceDescription:
    return SliceDescription(str(path), OffsetInterval(0, 0), 1, Multihash.of(b""), Multihash.of(b""))
