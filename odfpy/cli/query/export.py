"""`odf export`: write rows to files."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from odfpy.cli.datasets.branch import complete_moments
from odfpy.cli.grammar import (
    Form,
    command,
    complete_columns,
    complete_names,
    group,
    session_of,
    split_words,
    whole_number,
)
from odfpy.cli.screen.output import Output
from odfpy.data.amounts import count_of, format_size
from odfpy.errors import UsageError

if TYPE_CHECKING:
    from odfpy.cli.session import Session
    from odfpy.coordinator.reading.export import Exported
    from odfpy.coordinator.requests import ExportRequest
    from odfpy.data.rows.files import RowFileOptions

commands = group("Export.")

_STDOUT = "-"
FORMATS = ("parquet", "csv", "ndjson")
_COMPRESSIONS = ("zstd", "snappy", "gzip", "brotli", "lz4", "none")


@command(
    commands,
    "odf export com.example.rates --to rates.parquet",
    "odf export com.example.rates --current --to rates.csv.gz",
    "odf export com.example.rates --as-at 2024-03-01 --to march.parquet --compression snappy",
    "odf export -c 'select * from com.example.rates' --to rates/ --partition-by cur",
    "odf export com.example.rates --to - --format ndjson | head",
    "odf export --verify rates.parquet",
)
def export(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(help="Name or id of the dataset.", metavar="NAME", autocompletion=complete_names)
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(help="File, or folder for several files; must not exist. `-` is standard output.", metavar="PATH"),
    ] = None,
    query: Annotated[
        str | None,
        typer.Option("--command", "-c", help="Export the result of this query instead of a dataset.", metavar="SQL"),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            help="Engine and dialect.", metavar="spark|datafusion", autocompletion=lambda: ["spark", "datafusion"]
        ),
    ] = None,
    current: Annotated[bool, typer.Option("--current", help="The current state, instead of the log.")] = False,
    as_at: Annotated[
        str | None,
        typer.Option(
            help="The state at a time, block, tag or branch.",
            metavar="MOMENT",
            autocompletion=complete_moments,
        ),
    ] = None,
    as_of: Annotated[str | None, typer.Option(help="Rows valid at this event time.", metavar="TIME")] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            help="parquet, csv or ndjson; by default from the file name.",
            metavar="FORMAT",
            autocompletion=lambda: list(FORMATS),
        ),
    ] = None,
    compression: Annotated[
        str | None,
        typer.Option(
            help="zstd (default of Parquet), snappy, gzip, brotli, lz4, none.",
            metavar="CODEC",
            autocompletion=lambda: list(_COMPRESSIONS),
        ),
    ] = None,
    compression_level: Annotated[
        str | None, typer.Option(help="Compression level, for zstd, gzip and brotli.", metavar="N")
    ] = None,
    row_group_size: Annotated[
        str | None, typer.Option(help="Number of rows per Parquet row group.", metavar="N")
    ] = None,
    delimiter: Annotated[str | None, typer.Option(help="Character between the values of CSV.", metavar="CHAR")] = None,
    no_header: Annotated[bool, typer.Option("--no-header", help="CSV without a header line.")] = False,
    partition_by: Annotated[
        str | None,
        typer.Option(
            help="Columns to partition by (folders cur=EUR/), comma-separated.",
            metavar="COLUMNS",
            autocompletion=complete_columns,
        ),
    ] = None,
    rows_per_file: Annotated[str | None, typer.Option(help="Split into files of this many rows.", metavar="N")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier export.")] = False,
    verify: Annotated[
        str | None, typer.Option(help="Verify exported files against their description and exit.", metavar="PATH")
    ] = None,
    output_form: Form = None,
) -> None:
    """Write a dataset, or the answer to a query, to files, with a description of its origin."""
    from odfpy.coordinator.requests import ExportRequest

    session = session_of(context)
    output = session.output_as(output_form)
    if verify is not None:
        from odfpy.coordinator.reading.export import check_export

        if name is not None or to is not None or query is not None:
            raise UsageError("--verify cannot be combined with other options", hint="odf export --verify PATH")
        _print("As exported", check_export(Path(verify)), output)
        return
    to = _check_options(to, form, output, is_cut=bool(partition_by or rows_per_file))
    files = _files(
        "rows.csv" if to == _STDOUT else to,
        form,
        compression,
        compression_level,
        row_group_size,
        delimiter,
        no_header=no_header,
    )
    request = ExportRequest(
        ref=name,
        to=to,
        sql=query,
        engine=engine,
        current=current,
        as_at=as_at,
        as_of=as_of,
        files=files,
        partition_by=tuple(split_words(partition_by)),
        rows_per_file=whole_number(rows_per_file, "--rows-per-file", at_least=1),
        overwrite=overwrite,
    )
    done = _export_to_stdout(session, request) if to == _STDOUT else _export(session, request)
    _print("Exported", done, output, name=to)


def _check_options(to: str | None, form: str | None, output: Output, *, is_cut: bool) -> str:
    """Check the output options and return the target.

    Args:
        to: the target, `-` for standard output.
        form: the format.
        output: output of the command.
        is_cut: whether the export may write several files.

    Raises:
        UsageError: the target is missing, or the options do not fit it.
    """
    if not to:
        raise UsageError(
            "Missing option --to", hint="`odf export NAME --to rates.parquet`, or `--to -` for standard output."
        )
    if to == _STDOUT:
        if is_cut or not output.for_people:
            raise UsageError(
                "Standard output takes a single file",
                hint="Omit --partition-by, --rows-per-file and --output, or name a folder.",
            )
        if form == "parquet" and sys.stdout.isatty():
            raise UsageError("Parquet cannot be written to a terminal", hint="--format csv, or a file after `>`.")
    return to


def _export(session: Session, request: ExportRequest) -> Exported:
    done = session.workspace.queries.export(request, session.progress)
    session.progress.clear()
    return done


def _export_to_stdout(session: Session, request: ExportRequest) -> Exported:
    """Export to a temporary file, then print it, so that no partial export is printed."""
    with TemporaryDirectory() as folder:
        done = _export(session, replace(request, to=f"{folder}/rows"))
        sys.stdout.flush()
        with done.to.open("rb") as file:
            copyfileobj(file, sys.stdout.buffer)
        sys.stdout.flush()
    return done


def _files(
    to: str,
    form: str | None,
    compression: str | None,
    level: str | None,
    row_group: str | None,
    delimiter: str | None,
    *,
    no_header: bool,
) -> RowFileOptions:
    from odfpy.data.rows.files import RowFileOptions

    more: dict[str, Any] = {}
    if row_group is not None:
        more["row_group"] = whole_number(row_group, "--row-group-size", at_least=1)
    if delimiter is not None:
        more["delimiter"] = _character(delimiter)
    if no_header:
        more["header"] = False
    return RowFileOptions.of(
        Path(to).name, form, compression, whole_number(level, "--compression-level", at_least=1), **more
    )


def _character(text: str) -> str:
    one = {"\\t": "\t", "tab": "\t"}.get(text.lower(), text)
    if len(one) != 1 or not one.isascii() or one.isalnum() or one in '"\r\n+-.':
        raise UsageError(
            f"--delimiter must be one character that is not part of a number, not {text!r}",
            hint="A tab is written \\t.",
        )
    return one


def _print(what: str, done: Exported, output: Output, *, name: str | None = None) -> None:
    if not output.for_people:
        output.tree({"path": str(done.to), "sidecar": str(done.sidecar), **done.manifest})
        return
    files = f" in {count_of(done.num_files, 'file')}" if done.num_files != 1 else ""
    shown = "standard output" if name == _STDOUT else done.to
    output.info(f"{what}: {shown}, {count_of(done.num_rows, 'row')}{files}, {format_size(done.size)}")
    for one in done.manifest.get("inputs", ()):
        output.info(f"  of {one['alias']} at block {one['sequenceNumber']} {one['blockHash']}")
