#!/usr/bin/env python3
"""The main job of odfpy, from an empty folder to a dataset that somebody else has verified. `make demo` runs this.

A line like `alice$ odf list` is a command as Alice would type it, and what follows is its output. All of it happens in
the folder .demo, which is made anew; have a look around in it afterwards.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
SNAPSHOTS = REPOSITORY / "snapshots"
DEMO = REPOSITORY / ".demo"
ALICE, BOB, SHARED = DEMO / "alice", DEMO / "bob", DEMO / "shared"

ODF = Path(sys.executable).with_name("odf")
# Nothing of the person's own configuration has a part in this.
ENVIRONMENT = {**os.environ, "XDG_CONFIG_HOME": str(DEMO / "config")}

FIRST_DAYS = ("2013-02-08", "2013-02-09", "2013-02-10")
LAST_DAY = "2013-02-11"
LATE_DAY = "2013-02-09"
DAILY = "org.nycflights.daily-delays"
TOP = "org.nycflights.disruptions"
GRAPH = ("org.nycflights.flights", "org.nycflights.weather", "org.nycflights.delayed-flights", TOP)

SQL = """
SELECT to_date(event_time) AS day, what, count(*) AS how_many
FROM `org.nycflights.disruptions`
GROUP BY ALL
ORDER BY day, what
""".strip()


class DemoFailed(Exception):
    """A command did not do what the story says."""


def main() -> int:
    """Tell the story; 0 if every command did what it should."""
    began = time.monotonic()
    shutil.rmtree(DEMO, ignore_errors=True)
    ALICE.mkdir(parents=True)
    BOB.mkdir()
    try:
        make_a_workspace()
        get_data_in()
        new_data_arrives()
        data_arrives_late()
        ask_questions()
        verify()
        share()
        tamper()
    except DemoFailed as failure:
        print(f"\nThe demo stops here: {failure}", file=sys.stderr)
        return 1
    finally:
        for workspace in (ALICE, BOB):
            subprocess.run([ODF, "engine", "stop"], cwd=workspace, env=ENVIRONMENT, capture_output=True, check=False)
    print(f"\nDone in {time.monotonic() - began:.0f} seconds. The two workspaces and the repository are in .demo.")
    return 0


# --- The story -------------------------------------------------------------------------------------------------------


def make_a_workspace() -> None:
    """Init and add."""
    tell("Alice makes a workspace, and adds the example datasets: roots with a source each, derivatives with SQL.")
    odf(ALICE, "init")
    odf(ALICE, "add", "--recursive", "../../snapshots")


def get_data_in() -> None:
    """The first pull, of a two-level derivative and all it depends on."""
    tell(
        "Data on flights from New York and on the weather there, in February 2013. Three days are here; a fourth will"
        " come. One pull fetches both sources and derives, by Spark, first delayed flights, then all disruptions."
    )
    lay_out(*FIRST_DAYS)
    odf(ALICE, "pull", "--recursive", TOP)
    odf(ALICE, "list")


def new_data_arrives() -> None:
    """The second pull."""
    tell(
        "The fourth day arrives. Its flights begin with the evening before, as exports do: the ledger keeps what it"
        " does not know yet. Only the new rows go through the derivatives. A pull after that finds nothing to do."
    )
    lay_out(LAST_DAY)
    odf(ALICE, "pull", "--recursive", TOP)
    odf(ALICE, "pull", "--recursive", TOP)


def data_arrives_late() -> None:
    """An aggregate by windows of time, and its correction."""
    tell(
        "Derivatives may look at many rows: here, delays by day and airline. A day is told of once it is over; that is"
        " what watermarks are for. Then a flight turns up that was missing two days ago. What was said of that day is"
        " corrected (op 2 is what it was, op 3 what it is); nothing is rewritten."
    )
    odf(ALICE, "pull", "--recursive", DAILY)
    (ALICE / "data" / "flights" / "2013-02-12.csv").write_text("".join(late_flight()))
    odf(ALICE, "pull", "--recursive", DAILY)
    odf(ALICE, "tail", DAILY, "-n", "2")


def ask_questions() -> None:
    """Tail, SQL, lineage."""
    tell("What is in it, and where it comes from.")
    odf(ALICE, "tail", TOP, "-n", "3")
    odf(ALICE, "sql", "-c", SQL)
    odf(ALICE, "inspect", "lineage", TOP)


def verify() -> None:
    """By hash, then by replay."""
    tell(
        "Is all of it what it claims to be? First by hash: every block and file."
        " Then by replay: every derivation is repeated."
    )
    odf(ALICE, "verify", "--integrity", "--recursive", TOP)
    odf(ALICE, "verify", "--recursive", TOP)


def share() -> None:
    """Push, pull from the other side, verify there."""
    tell("Alice shares the dataset with what it was derived from. A repository can be any folder, or web server.")
    odf(ALICE, "push", "--recursive", TOP, "--to", f"file://{SHARED}/")
    tell("Bob, who has never seen Alice's machine, pulls the copies and repeats everything himself.")
    odf(BOB, "init")
    odf(BOB, "repo", "add", "shared", f"file://{SHARED}")
    odf(BOB, "pull", *(f"shared/{name}" for name in GRAPH))
    odf(BOB, "verify", "--recursive", TOP)


def tamper() -> None:
    """One byte of a slice, and who notices."""
    victim = max(BOB.glob(".odf/datasets/*/data/*"), key=lambda path: (path.stat().st_size, path.name))
    offset = victim.stat().st_size // 2
    tell(f"Now one byte of one of Bob's files is changed, of some {victim.stat().st_size:,}. He notices.")
    print(f"  {victim.relative_to(DEMO)}\n  byte {offset:,}: every bit flipped\n")
    content = bytearray(victim.read_bytes())
    content[offset] ^= 0xFF
    victim.write_bytes(content)
    said = odf(BOB, "verify", "--all", "--integrity", fails=True)
    if victim.name not in said or not re.search(r"block \d+ f1620[0-9a-f]{64}", said):
        raise DemoFailed(f"`odf verify` has failed, but not named the block and the file {victim.name}")


# --- Helpers ---------------------------------------------------------------------------------------------------------


def lay_out(*days: str) -> None:
    """Put some days of flights and weather where the manifests look for them."""
    for topic in ("flights", "weather"):
        for day in days:
            (file,) = (SNAPSHOTS / "data" / topic).glob(f"{day}.*")
            folder = ALICE / "data" / topic
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, folder)
            if file.name == f"{LATE_DAY}.csv":
                flight = late_flight()[1]
                (folder / file.name).write_text(file.read_text().replace(flight, ""))
    print("\n".join(f"  data/{path.relative_to(ALICE / 'data')}" for path in sorted(ALICE.glob("data/*/*"))) + "\n")


def late_flight() -> tuple[str, str]:
    """The header of the files of flights, and the line of one flight, which is kept for later."""
    header, *lines = (SNAPSHOTS / "data" / "flights" / f"{LATE_DAY}.csv").read_text().splitlines(keepends=True)
    year, month, day = (str(int(part)) for part in LATE_DAY.split("-"))
    return header, next(line for line in lines if line.startswith(f"{year},{month},{day},"))


def tell(text: str) -> None:
    """A paragraph of narration."""
    print(f"\n{textwrap.fill(text, 110)}\n", flush=True)


def odf(workspace: Path, *arguments: str, fails: bool = False) -> str:
    """Show a command and its output; the output is returned if the command is to fail.

    Raises:
        DemoFailed: its exit code is not the one expected.
    """
    print(f"{workspace.name}$ odf {shlex.join(arguments)}", flush=True)
    began = time.monotonic()
    # A command that works writes straight to the terminal, colours and progress and all.
    done = subprocess.run(
        [ODF, *arguments],
        cwd=workspace,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE if fails else None,
        stderr=subprocess.STDOUT if fails else None,
        text=True,
        check=False,
    )
    said = done.stdout or ""
    print(f"{said}({time.monotonic() - began:.1f} s)\n", flush=True)
    if done.returncode != (1 if fails else 0):
        raise DemoFailed(f"`odf {arguments[0]}` has ended with exit code {done.returncode}")
    return said


if __name__ == "__main__":
    sys.exit(main())
