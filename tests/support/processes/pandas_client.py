"""The client of Delta Sharing that PyPI has, unmodified, in a process of an environment of its own."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from threading import Timer
from typing import Any

PATIENCE = 120.0
"""Maximum seconds of a call, on a busy machine."""

_PROGRAM = """
import json, os, sys, traceback
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what libraries print is no answer
import delta_sharing

def answer(profile, what, table="rates", share="fx", target=None, options={}):
    url = f"{profile}#{share}.main.{table}"
    if what == "list":
        return [[t.share, t.schema, t.name] for t in delta_sharing.SharingClient(profile).list_all_tables()]
    if what == "version":
        return delta_sharing.get_table_version(url, **options)
    if what == "metadata":
        return json.loads(delta_sharing.get_table_metadata(url).schema_string)["fields"][0]["name"]
    load = delta_sharing.load_table_changes_as_pandas if what == "changes" else delta_sharing.load_as_pandas
    frame = load(url, **options)
    if target is not None:
        return frame.sample(frac=1, random_state=1).to_parquet(target)
    return json.loads(frame.to_json(orient="records"))

for line in sys.stdin:
    try:
        told = {"found": answer(**json.loads(line))}
    except Exception:
        told = {"error": traceback.format_exc()}
    print(json.dumps(told), file=answers, flush=True)
os._exit(0)  # at the end of the process, a thread of its native library calls std::terminate now and then
"""


class PandasClient:
    """A process that answers one question after the other: to import the client takes longer than to ask with it."""

    def __init__(self, python: Path) -> None:
        """Take the Python of an environment that has the client; the first question starts the process."""
        self._command = [str(python), "-c", _PROGRAM]
        self._process: subprocess.Popen[str] | None = None

    def ask(self, what: str, **asked: Any) -> Any:
        """Return what the client finds.

        Args:
            what: `list`, `version`, `metadata`, `rows` or `changes`.
            asked: `profile`, `share`, `table`; `options` are those of the client; `target`: a file for the rows.
        """
        told = self._tell({"what": what, **asked})
        assert "error" not in told, told["error"]
        return told["found"]

    def failure(self, what: str, **asked: Any) -> str:
        """Return the traceback of a question that fails; arguments are those of `ask`."""
        error: str = self._tell({"what": what, **asked})["error"]
        return error

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _tell(self, asked: dict[str, Any]) -> dict[str, Any]:
        if self._process is None:
            self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        process = self._process
        assert process.stdin
        assert process.stdout
        timer = Timer(PATIENCE, process.kill)
        timer.start()
        try:
            print(json.dumps(asked, default=str), file=process.stdin, flush=True)
            line = process.stdout.readline()
        finally:
            timer.cancel()
        if not line:
            self.close()
        assert line, "the process of the client has ended"
        told: dict[str, Any] = json.loads(line)
        return told
