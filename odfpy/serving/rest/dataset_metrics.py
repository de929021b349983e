"""Freshness of datasets for Prometheus: a gauge for each number in lists, with a sample for each dataset.

Missing numbers have no sample: a dataset without rows has no time of its latest rows. Prometheus can alert on absent
samples, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from fastapi import APIRouter, Request, Response

from odfpy.data.timestamp import Timestamp
from odfpy.serving.callers.access import AnyCaller, unauthorized_error
from odfpy.serving.rest.catalog import Catalog, CatalogEntry

server = APIRouter(tags=["server"])

MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_Number = Callable[[CatalogEntry], float | None]

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_EXAMPLE = '# TYPE odf_dataset_rows gauge\nodf_dataset_rows{dataset="com.example.rates"} 50\n'


def _seconds(time: Timestamp | None) -> float | None:
    return None if time is None else time.nanos / 1e9


_GAUGES: Final[Sequence[tuple[str, str, _Number]]] = (
    ("odf_dataset_rows", "Rows of the changelog", lambda entry: entry.num_records),
    ("odf_dataset_size_bytes", "Bytes of all slices", lambda entry: entry.data_size),
    ("odf_dataset_blocks", "Blocks of the chain", lambda entry: entry.num_blocks),
    (
        "odf_dataset_last_data_timestamp_seconds",
        "When rows came last, since 1970",
        lambda entry: _seconds(entry.updated_at),
    ),
    (
        "odf_dataset_max_age_seconds",
        "The age of its last rows that its schedule promises",
        lambda entry: entry.schedule.max_age.seconds if entry.schedule and entry.schedule.max_age else None,
    ),
    ("odf_dataset_watermark_timestamp_seconds", "Watermark, since 1970", lambda entry: _seconds(entry.watermark)),
    (
        "odf_dataset_pull_failed",
        "Whether the last pull here failed: 1 or 0",
        lambda entry: int(entry.failure is not None),
    ),
    (
        "odf_dataset_verified",
        "Whether the last verification here found nothing wrong: 1 or 0",
        lambda entry: int(entry.verification.ok) if entry.verification else None,
    ),
    (
        "odf_dataset_verification_timestamp_seconds",
        "When that was, since 1970",
        lambda entry: _seconds(entry.verification.time) if entry.verification else None,
    ),
)


@server.get(
    "/metrics/datasets",
    response_class=Response,
    responses={
        200: {"content": {"text/plain": {"example": _EXAMPLE}}},
        401: {"description": "An access token is needed."},
    },
)
def dataset_metrics(request: Request, caller: AnyCaller) -> Response:
    """Return Prometheus metrics of each dataset that the caller may read; needs a token."""
    if caller.token is None:
        raise unauthorized_error("Numbers of datasets need an access token with the scope read")
    catalog: Catalog = request.app.state.catalog
    return Response(text_of(catalog.visible_to(caller)), media_type=MEDIA_TYPE)


def text_of(entries: Sequence[CatalogEntry]) -> str:
    """Format numbers of datasets in Prometheus' text format.

    Args:
        entries: the datasets.
    """
    # The client library is several times slower at this: it is made for counters, not for computed values.
    labels = [f'{{dataset="{entry.name.translate(_ESCAPES)}"}}' for entry in entries]
    return "".join(line for gauge in _GAUGES for line in _lines(*gauge, entries, labels))


def _lines(name: str, help_: str, number: _Number, entries: Sequence[CatalogEntry], labels: list[str]) -> Iterator[str]:
    yield f"# HELP {name} {help_}.\n# TYPE {name} gauge\n"
    for entry, label in zip(entries, labels, strict=True):
        value = number(entry)
        if value is not None:
            yield f"{name}{label} {value!r}\n"
