"""Relays without work: what they import, and what they keep of work that is done."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

from support.federation.documents import declared
from support.federation.served import linked_web
from support.servers.serving import wait_until

from odfpy.federation.model.steps import plan
from odfpy.federation.store.store import WebStore

NOT_NEEDED = {
    "sqlglot",
    "pyarrow.compute",
    "pyarrow.parquet",
    "pyarrow.dataset",
    "pyarrow.fs",
    "pandas",
    "datafusion",
    "sqlalchemy.dialects.postgresql",
}

PROGRAM = """
import sys
from pathlib import Path
from odfpy.extras import do_without_pandas
do_without_pandas()
import odfpy.cli.relay.serve
import odfpy.serving.relay.running
from odfpy.federation.relay.reading import entities_of
from odfpy.federation.relay.requesters import Identity
from odfpy.federation.relay.stored_catalog import StoredCatalog
from odfpy.federation.store.store import WebStore

catalog = StoredCatalog(WebStore.of_workspace(Path(sys.argv[1]), None))
print(*entities_of(catalog, "", Identity("0" * 64, {})), catalog.is_first("a question", 60))
print(*sys.modules)
"""


def test_a_relay_that_only_names_its_entities_imports_nothing_large(tmp_path: Path) -> None:
    store = WebStore.of_workspace(tmp_path / "odf", None)
    steps = plan(store.applies.state().web, declared(tmp_path / "web"), prune=False)
    store.applies.apply(steps, based_on=0, who="ann")
    store.database.close()
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "odf")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    said, modules = done.stdout.splitlines()
    assert said == "lineitem True"
    assert NOT_NEEDED & set(modules.split()) == set()


def test_a_reading_that_has_ended_leaves_no_clock(tmp_path: Path) -> None:
    with linked_web(tmp_path) as web:
        asked = web.asks(web.known_user("ann"), "na")
        before = clocks()
        for query in ("SELECT id FROM item", "SELECT count(*) AS n FROM item"):
            with asked.sql(query, require_complete=True) as answer:
                answer.to_arrow()
        wait_until(lambda: clocks() <= before)


def clocks() -> set[threading.Thread]:
    return {one for one in threading.enumerate() if isinstance(one, threading.Timer)}
