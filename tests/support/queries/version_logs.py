"""Small changelogs of one table, and the versions that they amount to: times are days, rows one text each."""

from __future__ import annotations

LOGS = {
    "a row begins a version and ends the one before": (
        [["+A 1 EUR 10", "+A 1 USD 5"], ["+A 3 EUR 11"]],
        ["EUR 10 1-3", "EUR 11 3-open", "USD 5 1-open"],
    ),
    "a late row begins a version in between": (
        [["+A 1 EUR 10"], ["+A 5 EUR 12"], ["+A 3 EUR 11"]],
        ["EUR 10 1-3", "EUR 11 3-5", "EUR 12 5-open"],
    ),
    "of two rows of one time the last counts": ([["+A 1 EUR 10", "+A 1 EUR 9"]], ["EUR 9 1-open"]),
    "a correction at the same time takes the place of a version": (
        [["+A 1 EUR 10"], ["+A 4 EUR 11"], ["-C 1 EUR 10", "+C 1 EUR 12"]],
        ["EUR 11 4-open", "EUR 12 1-4"],
    ),
    "a correction at a later time is an update": (
        [["+A 1 EUR 10"], ["-C 1 EUR 10", "+C 4 EUR 11"]],
        ["EUR 10 1-4", "EUR 11 4-open"],
    ),
    "a correction to an earlier time moves a version": (
        [["+A 4 EUR 10"], ["-C 4 EUR 10", "+C 2 EUR 10"]],
        ["EUR 10 2-open"],
    ),
    "an update as a changelog stream writes it, both rows at the time of the change": (
        [["+A 1 EUR 10"], ["-C 4 EUR 10", "+C 4 EUR 11"]],
        ["EUR 10 1-4", "EUR 11 4-open"],
    ),
    "a retraction at a later time ends a version": ([["+A 1 EUR 10"], ["-R 4 EUR 10"]], ["EUR 10 1-4"]),
    "a key that has ended may begin again": (
        [["+A 1 EUR 10"], ["-R 4 EUR 10"], ["+A 6 EUR 10"]],
        ["EUR 10 1-4", "EUR 10 6-open"],
    ),
    "a retraction of one of several rows says that it was wrong": (
        [["+A 1 EUR 10"], ["+A 3 EUR 99"], ["+A 5 EUR 11"], ["-R 3 EUR 99"]],
        ["EUR 10 1-5", "EUR 11 5-open"],
    ),
    "a retraction together with the row that takes its place says so too": (
        [["+A 1 EUR 10"], ["-R 1 EUR 10", "+A 1 EUR 12"]],
        ["EUR 12 1-open"],
    ),
    "a snapshot without a key ends it at the time of the snapshot": (
        [["+A 1 EUR 10", "+A 1 USD 5"], ["-R 1 EUR 10", "-C 1 USD 5", "+C 4 USD 6"]],
        ["EUR 10 1-4", "USD 5 1-4", "USD 6 4-open"],
    ),
    "a snapshot that has nothing but gone keys ends them just after the one before": (
        [["+A 1 EUR 10", "+A 3 USD 5"], ["-R 1 EUR 10"]],
        ["EUR 10 1-3+", "USD 5 3-open"],
    ),
    "a key that comes back at an earlier time never went": (
        [["+A 1 EUR 10", "+A 3 USD 5"], ["-R 1 EUR 10"], ["+A 1 EUR 10"]],
        ["EUR 10 1-open", "USD 5 3-open"],
    ),
}  # fmt: skip
