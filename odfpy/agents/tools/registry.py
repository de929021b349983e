"""All tools."""

from __future__ import annotations

from typing import Any, Final

from odfpy.agents.readers import Reader
from odfpy.agents.tool import Tool
from odfpy.agents.tools.check_proof import CHECK
from odfpy.agents.tools.compare import COMPARE
from odfpy.agents.tools.describe import DESCRIBE
from odfpy.agents.tools.find import FIND
from odfpy.agents.tools.history import HISTORY
from odfpy.agents.tools.provenance import PROVENANCE
from odfpy.agents.tools.pull import PULL
from odfpy.agents.tools.query import QUERY

TOOLS: Final[tuple[Tool[Any], ...]] = (FIND, DESCRIBE, QUERY, CHECK, PROVENANCE, HISTORY, COMPARE, PULL)


def tools_of(reader: Reader) -> list[Tool[Any]]:
    """Return the tools available to a caller; other tools do not exist for it."""
    has_token, may_write = reader.caller.token is not None, reader.may_write()
    return [tool for tool in TOOLS if (has_token or not tool.needs_token) and (may_write or not tool.writes)]
