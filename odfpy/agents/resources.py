"""Resources, which users or clients add to a conversation: descriptions, schemas, proofs."""

from __future__ import annotations

import json
from typing import Final
from urllib.parse import unquote

from mcp.types import Resource, ResourceTemplate

from odfpy.agents.proofs import SCHEME
from odfpy.agents.readers import Reader
from odfpy.agents.tools.describe import columns_of, describe
from odfpy.errors import NotFound

MIME_TYPE: Final = "application/json"

_DATASETS: Final = "odf://dataset/"
_SCHEMA: Final = "/schema"

TEMPLATES: Final = [
    ResourceTemplate(
        uri_template=f"{_DATASETS}{{name}}",
        name="dataset",
        title="Description of a dataset",
        description="The description of the dataset, as from describe_dataset.",
        mime_type=MIME_TYPE,
    ),
    ResourceTemplate(
        uri_template=f"{_DATASETS}{{name}}{_SCHEMA}",
        name="schema",
        title="Schema of a dataset",
        description="Its columns, with their types.",
        mime_type=MIME_TYPE,
    ),
    ResourceTemplate(
        uri_template=f"{SCHEME}{{hash}}",
        name="proof",
        title="Proof of an answer",
        description="The answer with its proof, for odf verify-result.",
        mime_type=MIME_TYPE,
    ),
]


def of_dataset(name: str) -> Resource:
    """Return the resource of a dataset; it only contains the name, which cannot contain a sentence.

    Args:
        name: name of the dataset.
    """
    return Resource(uri=f"{_DATASETS}{name}", name=name, mime_type=MIME_TYPE)


def read(reader: Reader, uri: str) -> str:
    """Return the text of a resource.

    Args:
        reader: reader of the caller.
        uri: URI of the resource.

    Raises:
        NotFound: the resource does not exist for the caller.
    """
    if uri.startswith(SCHEME):
        return reader.served.proofs.find(uri.removeprefix(SCHEME), reader.owner).decode()
    if not uri.startswith(_DATASETS):
        raise NotFound(f"There is no resource {uri[:200]!r}", hint=f"{_DATASETS}NAME, or {SCHEME}HASH.")
    name = unquote(uri.removeprefix(_DATASETS))
    if name.endswith(_SCHEMA):
        dataset = reader.dataset(name.removesuffix(_SCHEMA))
        return json.dumps({"columns": [column.model_dump() for column in columns_of(dataset)]}, ensure_ascii=False)
    return json.dumps(describe(reader, reader.dataset(name)).model_dump(mode="json"), ensure_ascii=False)
