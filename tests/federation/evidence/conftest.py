"""A web of two relays whose answers are kept."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.federation.served import ServedWeb, served_web

from odfpy.federation.authority import Issued
from odfpy.federation.relay.requesters import Authorities

NA = "1,10.5,N\n2,20.5,R\n3,7.25,N\n"
GLOBAL = "10,1500,N\n11,900,R\n"


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedWeb]:
    with served_web(tmp_path_factory.mktemp("web")) as made:
        made.relay("na", "price", NA)
        made.relay("global", "percent", GLOBAL)
        made.link("na", "global", "{v} / 100")
        yield made


@pytest.fixture(scope="module")
def ann(web: ServedWeb) -> Issued:
    return web.known_user("ann")


@pytest.fixture(scope="module")
def trusted(web: ServedWeb) -> Authorities:
    return Authorities(web.issued.facts.pem.encode())
