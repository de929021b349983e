"""Query results as simple charts, in the terminal or as a PNG file.

The first column is the horizontal axis: times and numbers are drawn as lines, names as bars. All other numeric columns
are drawn; a single column is drawn over the row number. A single row is not drawn, but printed as numbers.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from odfpy.cli.screen.terminal import paint
from odfpy.cli.screen.ticks import Ticks, number_text, number_ticks, one_day, time_ticks
from odfpy.data.rows.text_table import cells
from odfpy.errors import NothingToPlot, OdfError
from odfpy.escaping import escape_controls
from odfpy.extras import needs_extra
from odfpy.files import replaced_atomically

if TYPE_CHECKING:
    import pyarrow as pa

MAX_POINTS: Final = 100_000
"""Maximum number of rows that are drawn; more would not be visible."""

MAX_BARS: Final = 40
_ROOM_IN_FILES: Final = 90
"""Width of a PNG file in characters."""

_TALLEST: Final = 24
_ROOM_UP: Final = 24
"""Characters available for labels of the vertical axis: few, since a chart has few lines."""
_MAX_VALUE: Final = 1e300
"""Larger numbers are left out, since the difference of two must be a finite float, too."""

_COLOURS: Final = ("cyan", "orange", "green", "magenta", "red", "blue")


@dataclass(frozen=True, slots=True)
class Series:
    """A line, or the bars of one color.

    Attributes:
        points: horizontal position and value, without nulls, sorted by position, not by row.
        rows: row numbers of the points.
    """

    name: str
    points: tuple[tuple[float, float], ...]
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """The content of a chart.

    Attributes:
        across: name of the horizontal axis.
        series: the lines or bars.
        names: names of the bars; empty for lines.
        is_time: whether the horizontal axis is time, in seconds since 1970.
        values: for a single row with numbers, its values by column name; they are printed instead of a drawing.
    """

    across: str
    series: tuple[Series, ...]
    names: tuple[str, ...] = ()
    is_time: bool = False
    values: tuple[tuple[str, str], ...] = ()

    def ticks(self, room: int) -> Ticks:
        """Return the positions of labels on the horizontal axis, in order.

        Args:
            room: number of characters available.
        """
        places = [x for series in self.series for x, _ in series.points]
        first, last = min(places), max(places)
        if self.is_time:
            return time_ticks(first, last, room, whole=all(place % 86_400 == 0 for place in places))
        return number_ticks(first, last, room, whole=all(place % 1 == 0 for place in places))

    @property
    def label(self) -> str:
        """The title of the horizontal axis, with the date if labels have only the time of day."""
        places = [x for series in self.series for x, _ in series.points] if self.is_time else []
        day = one_day(min(places), max(places)) if places else None
        return self.across if day is None else f"{self.across}, {day}"


def chart_of(table: pa.Table) -> Chart:
    """Build the chart of a result.

    Raises:
        NothingToPlot: the result has no numbers.
    """
    chart = _chart_of(table)
    if not any(series.points for series in chart.series):
        raise NothingToPlot("The answer has no numbers to plot: they are null, or not finite")
    rows = _drawn_rows(chart)
    if len(chart.names) > 1 or len(rows) > 1:
        return chart
    return replace(chart, values=_values(table, rows.pop()))


def _drawn_rows(chart: Chart) -> set[int]:
    return {row for series in chart.series for row in series.rows}


def _values(table: pa.Table, row: int) -> tuple[tuple[str, str], ...]:
    """Return the values of a row to print instead of a chart: the first column, and all numbers with all digits."""
    from odfpy.cli.screen.output import cell
    from odfpy.data.rows.plain_values import columns_of, plain

    only = table.slice(row, 1)
    is_shown = [_is_number(field.type) for field in table.schema]
    is_shown[0] = is_shown[0] or not _is_flag(table.schema[0].type)
    pairs = zip(table.schema.names, columns_of(only), is_shown, strict=True)
    return tuple(
        (escape_controls(name), escape_controls(cell(plain(value)))) for name, (value,), shown in pairs if shown
    )


def _chart_of(table: pa.Table) -> Chart:
    import pyarrow as pa

    columns = [(field, table.column(at).combine_chunks()) for at, field in enumerate(table.schema)]
    if not table.num_rows:
        raise NothingToPlot("The answer has no rows to plot")
    first = columns[0] if len(columns) > 1 and not _is_flag(columns[0][0].type) else None
    numbers = [
        (field.name, _floats(column)) for field, column in columns[first is not None :] if _is_number(field.type)
    ]
    if not numbers:
        raise NothingToPlot(
            "The answer has no numeric column to plot" + (" besides the first" if first else ""),
            hint="Select the horizontal axis first, then numbers.",
        )
    if first is None:
        return Chart("row", tuple(_series(name, range(1, table.num_rows + 1), high) for name, high in numbers))
    field, column = first
    if pa.types.is_timestamp(field.type) or pa.types.is_date(field.type):
        across = _seconds(column)
        return Chart(field.name, tuple(_series(name, across, high) for name, high in numbers), is_time=True)
    if _is_number(field.type):
        across = _floats(column)
        return Chart(field.name, tuple(_series(name, across, high) for name, high in numbers))
    return _bars(field.name, column, numbers)


def _bars(across: str, column: pa.Array, numbers: Sequence[tuple[str, Sequence[float | None]]]) -> Chart:
    import pyarrow as pa

    from odfpy.cli.screen.output import cell
    from odfpy.data.rows.plain_values import columns_of, plain

    (values,) = columns_of(pa.table({across: column.slice(0, MAX_BARS)}))
    names = tuple(escape_controls(cell(plain(value))) or "(none)" for value in values)
    series = tuple(_series(name, range(len(names)), high[: len(names)]) for name, high in numbers)
    return Chart(across, series, names)


def _series(name: str, across: Sequence[float | None], high: Sequence[float | None]) -> Series:
    rows = enumerate(zip(across, high, strict=True))
    found = [((x, y), row) for row, (x, y) in rows if _is_drawn(x) and _is_drawn(y)]
    found.sort(key=lambda one: one[0][0])
    return Series(name, tuple(point for point, _ in found), tuple(row for _, row in found))


def _is_drawn(number: float | None) -> TypeGuard[float]:
    return number is not None and abs(number) <= _MAX_VALUE


def _is_number(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_flag(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_nested(kind))


def _floats(column: pa.Array) -> list[float | None]:
    import pyarrow as pa

    return column.cast(pa.float64(), safe=False).to_pylist()  # type: ignore[no-any-return]


def _seconds(column: pa.Array) -> list[float | None]:
    import pyarrow as pa

    zone = column.type.tz if pa.types.is_timestamp(column.type) else None
    micros = column.cast(pa.timestamp("us", zone), safe=False).cast(pa.int64())
    return [None if count is None else count / 1e6 for count in micros.to_pylist()]


# --- In the terminal -------------------------------------------------------------------------------------------------


def draw(chart: Chart) -> str:
    """Draw the chart in characters, as wide as the terminal."""
    import shutil

    if chart.values:
        return _listed(chart.values)
    import plotext

    size = shutil.get_terminal_size((80, 24))
    plotext.clear_figure()
    plotext.theme("clear")
    plotext.limit_size(False, False)
    plotext.plot_size(size.columns, max(8, min(size.lines - 4, _TALLEST)))
    is_coloured = paint("x", "cyan", sys.stdout) != "x"
    if chart.names:
        return _drawn_bars(chart, size.columns, is_coloured=is_coloured)
    for number, series in enumerate(chart.series):
        colour = _COLOURS[number % len(_COLOURS)] if is_coloured else None
        xs, ys = zip(*series.points, strict=True) if series.points else ((), ())
        draw_as = plotext.plot if len(xs) > 1 else plotext.scatter
        draw_as(xs, ys, label=escape_controls(series.name), color=colour)
    heights = [y for series in chart.series for _, y in series.points]
    up = number_ticks(min(heights), max(heights), _ROOM_UP)
    plotext.yticks([at for at, _ in up], [label for _, label in up])
    across = chart.ticks(size.columns - max(len(label) for _, label in up) - 2)
    plotext.xticks([at for at, _ in across], [label for _, label in across])
    plotext.xlabel(escape_controls(chart.label))
    text = str(plotext.build())
    text = text if is_coloured else str(plotext.uncolorize(text))
    return "\n".join(line.rstrip() for line in text.splitlines())


def _listed(values: Sequence[tuple[str, str]]) -> str:
    names = max(cells(name) for name, _ in values)
    return "\n".join(f"{name}{' ' * (names - cells(name))}  {text}" for name, text in values)


def _drawn_bars(chart: Chart, width: int, *, is_coloured: bool) -> str:
    """Draw horizontal bars, one per line, since names need space."""
    names = max(map(cells, chart.names))
    values = [y for series in chart.series for _, y in series.points]
    room = max(10, width - names - max((len(number_text(y)) for y in values), default=0) - 4)
    largest = max((abs(y) for y in values), default=0) or 1
    highs = [dict(series.points) for series in chart.series]
    lines = []
    if len(chart.series) > 1:
        lines.append(
            "  ".join(
                _painted(f"█ {escape_controls(one.name)}", at, is_coloured) for at, one in enumerate(chart.series)
            )
        )
    for row, name in enumerate(chart.names):
        for at, high in enumerate(highs):
            label = name if at == 0 else ""
            y = high.get(row)
            bar = "" if y is None else "█" * round(room * abs(y) / largest)
            shown = (
                "" if y is None else f"{'-' if y < 0 and bar else ''}{_painted(bar, at, is_coloured)} {number_text(y)}"
            )
            lines.append(f"{label}{' ' * (names - cells(label))}  {shown}".rstrip())
    return "\n".join(lines)


def _painted(text: str, number: int, is_coloured: bool) -> str:
    codes = (36, 33, 32, 35, 31, 34)
    return f"\x1b[{codes[number % len(codes)]}m{text}\x1b[0m" if is_coloured and text else text


# --- As a file -------------------------------------------------------------------------------------------------------


def write_png(chart: Chart, path: Path) -> None:
    """Write the chart as a PNG file, atomically.

    Raises:
        OdfError: matplotlib is missing, or the file cannot be written.
    """
    import warnings

    with needs_extra("plot", "Charts as PNG files", OdfError):
        from matplotlib import rc_context
        from matplotlib.figure import Figure

    # Names are not parsed as formulas, and warnings about characters missing in the font are ignored.
    with warnings.catch_warnings(), rc_context({"text.parse_math": False}):
        warnings.simplefilter("ignore")
        figure = Figure(figsize=(9, 5), layout="constrained")
        _fill(figure.subplots(), chart)
        try:
            with replaced_atomically(path) as temporary:
                figure.savefig(temporary, format="png", dpi=120)
        except OSError as error:
            raise OdfError(f"Cannot write {path}: {error.strerror or error}") from error


def _fill(axes: Any, chart: Chart) -> None:
    if chart.values:
        axes.set_axis_off()
        axes.text(0.5, 0.5, "\n".join(f"{name}: {text}" for name, text in chart.values), size=24, **_IN_THE_MIDDLE)
        return
    width = 0.8 / len(chart.series)
    for number, series in enumerate(chart.series):
        xs = [x for x, _ in series.points]
        ys = [y for _, y in series.points]
        if chart.names:
            axes.bar([x + (number - (len(chart.series) - 1) / 2) * width for x in xs], ys, width, label=series.name)
        else:
            axes.plot(xs, ys, label=series.name, marker="." if len(xs) < 50 else "")
    if chart.names:
        axes.set_xticks(range(len(chart.names)), chart.names, rotation=30, ha="right")
    else:
        ticks = chart.ticks(_ROOM_IN_FILES)
        axes.set_xticks([at for at, _ in ticks], [label for _, label in ticks])
    axes.set_xlabel(chart.label)
    axes.legend()


_IN_THE_MIDDLE: Final = {"ha": "center", "va": "center", "wrap": True}
