"""Removal of files that a failed request may have left behind."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from odfpy.engine.contract import AnalyzeRequest, JobRequest, PreprocessRequest, SqlRequest, TransformRequest
from odfpy.engine.tracing import TraceRequest


def remove_output(
    request: AnalyzeRequest | TransformRequest | PreprocessRequest | SqlRequest | TraceRequest | JobRequest,
) -> None:
    """Remove the output files of a request, as far as they exist."""
    match request:
        case TransformRequest():
            paths = [request.new_data_path, request.new_checkpoint_path]
            if request.new_arrangement_path is not None:
                shutil.rmtree(request.new_arrangement_path, ignore_errors=True)
        case PreprocessRequest() | SqlRequest() | TraceRequest():
            paths = [request.output_path]
        case JobRequest():
            shutil.rmtree(request.folder, ignore_errors=True)
            paths = []
        case AnalyzeRequest():
            paths = []
    for path in paths:
        with suppress(OSError):
            Path(path).unlink(missing_ok=True)
