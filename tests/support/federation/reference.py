"""The reference web for tests: its relays in separate processes, queried over plain Flight or by `odfpy.web`.

with reference_web(folder) as web:
    asked_bare(web, "na", GUEST, "SELECT ...").rows
    asked(web, "na", GUEST, "SELECT ...")
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.flight as fl

from odfpy import web as odf_web
from odfpy.federation.demo.documents import ALL_ACCESS, GUEST
from odfpy.federation.demo.layout import web_folder
from odfpy.federation.demo.questions import FILES
from odfpy.federation.demo.running import RunningWeb, running_web
from odfpy.federation.demo.words import RELAYS
from odfpy.federation.relay.flight import question_bytes
from odfpy.federation.relay.question import Question, SentFragment
from odfpy.federation.relay.requesters import Credentials
from odfpy.federation.sql.split import split

ASKED = ("na_us", "na", "global")
"""The relays that receive questions."""

USERS = (GUEST, ALL_ACCESS)
SOURCES = ["apac", "emea", "global", "na", "na_us", "na_us"]
"""The relays of an answer, each once for each of its sources."""

SECONDS = 120.0
"""Time for a question. The first one of all waits ten seconds for the relay that never answers."""


@contextmanager
def reference_web(folder: Path, *, offline: bool = True) -> Iterator[RunningWeb]:
    """The reference web, as long as the block lasts."""
    with running_web(web_folder(folder), offline=offline) as web:
        yield web


def tax_above(relay: str, percent: int) -> str:
    """Return the condition that tax exceeds a percentage, in the vocabulary of a relay."""
    return f"tax > {percent / 100}" if relay == "global" else f"tax_percent > {percent}"


def tpch(relay: str, number: int) -> str:
    """Return a query of TPC-H, in the vocabulary of a relay."""
    return FILES[f"q{number}_{'fractions' if relay == 'global' else 'percent'}.sql"]


@dataclass(frozen=True)
class BareAnswer:
    """The result of a plain Flight client.

    Attributes:
        tables: rows of each endpoint, and the relay that it is of.
        missing: names of relays whose rows are missing.
    """

    tables: list[tuple[str, pa.Table]]
    missing: list[str]

    @property
    def relays(self) -> list[str]:
        return sorted(relay for relay, _ in self.tables)

    @property
    def num_rows(self) -> int:
        return sum(table.num_rows for _, table in self.tables)


def asked_bare(web: RunningWeb, relay: str, user: str, sql: str, *, token: bool = True) -> BareAnswer:
    """Query a single fragment with pyarrow's client: GetFlightInfo, and DoGet of each endpoint.

    Args:
        web: the web.
        relay: the queried relay.
        user: the user.
        sql: the query, in the vocabulary of the relay.
        token: whether the user signs a token, so that further relays know them, too.
    """
    folder = web.folder
    with web.connect(relay, user) as asked_web:
        [fragment] = split(sql, asked_web.entities()).fragments.values()
    query = secrets.token_hex(16)
    credentials = Credentials.load(folder.certificate(user), folder.key(user))
    requester = credentials.token(query, seconds=SECONDS) if token else None
    question = Question(f"{query} f1", SentFragment.of(fragment), seconds=SECONDS, requester=requester)
    with closing(_client(web, web.locations[relay], user)) as client:
        info = client.get_flight_info(fl.FlightDescriptor.for_command(question_bytes(question)))
    tables = []
    for endpoint in info.endpoints:
        [location] = endpoint.locations
        with closing(_client(web, location.uri.decode(), user)) as client:
            tables.append((json.loads(endpoint.app_metadata)["relay"], client.do_get(endpoint.ticket).read_all()))
    return BareAnswer(tables, [name for name, _ in json.loads(info.app_metadata)["missing"]])


def _client(web: RunningWeb, location: str, user: str) -> fl.FlightClient:
    folder = web.folder
    return fl.FlightClient(
        location,
        tls_root_certs=folder.authorities.read_bytes(),
        cert_chain=folder.certificate(user).read_bytes(),
        private_key=folder.key(user).read_bytes(),
    )


@dataclass(frozen=True)
class WebRows:
    """The result of a program that uses `odfpy.web`."""

    table: pa.Table
    relays: list[str]
    missing: list[str]


def asked(web: RunningWeb, relay: str, user: str, sql: str) -> WebRows:
    """Query with `odfpy.web`."""
    folder = web.folder
    with (
        odf_web.connect(
            web.locations[relay], folder.certificate(user), folder.key(user), folder.authorities
        ) as connected,
        connected.sql(sql, seconds=SECONDS) as answer,
    ):
        return WebRows(answer.to_arrow(), sorted(answer.relays), [one.relay for one in answer.missing])


def oracle(web: RunningWeb, user: str, sql: str) -> pa.Table:
    """Return the answer of duckdb over the rows of all relays that a user may see, read from the files.

    Args:
        web: the web.
        user: the user.
        sql: the query, in the vocabulary of global.
    """
    rows = "true" if user == ALL_ACCESS else "returnflag = 'N'"
    columns = "orderkey, quantity, extendedprice, discount, tax, returnflag, linestatus, shipdate"
    more = columns.replace("discount, tax", "discount_percent / 100 AS discount, tax_percent / 100 AS tax")
    more = more.replace("orderkey", "NULL AS orderkey")
    lines = [f"SELECT {columns} FROM ({_plain(web, relay, 'lineitem', 'l_')})" for relay in RELAYS]
    lines.append(f"SELECT {more} FROM read_csv('{web.folder.more_lines}')")
    views = {
        "lineitem": f"SELECT * FROM ({' UNION ALL '.join(lines)}) WHERE {rows}",
        "customer": " UNION ALL ".join(_plain(web, relay, "customer", "c_") for relay in RELAYS),
        "orders": " UNION ALL ".join(_plain(web, relay, "orders", "o_") for relay in RELAYS),
    }
    views["customer"] = f"SELECT * FROM ({views['customer']}) WHERE acctbal > 0"
    with duckdb.connect() as connection:
        for name, text in views.items():
            connection.execute(f"CREATE VIEW {name} AS {text}")
        return connection.sql(sql).to_arrow_table()


def _plain(web: RunningWeb, relay: str, table: str, letter: str) -> str:
    """Return a table of a relay without the prefix of TPC-H's column names; exact numbers become doubles."""
    amounts = ("quantity", "extendedprice", "discount", "tax")
    path = web.folder.data(relay, table)
    if table != "lineitem":
        return f"SELECT COLUMNS('{letter}(.*)') AS '\\1' FROM '{path}'"
    doubles = ", ".join(f"CAST(l_{name} AS DOUBLE) AS {name}" for name in amounts)
    return f"SELECT {doubles}, l_orderkey AS orderkey, l_returnflag AS returnflag, l_linestatus AS linestatus, l_shipdate AS shipdate FROM '{path}'"
