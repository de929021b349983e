"""Types of the values of settings."""

# No `from __future__ import annotations` here, as in `sections`.

from typing import Annotated, Final

from odfpy.data.duration import DURATION_FORM
from odfpy.settings.setting import Bounds, Form, SizeBounds

Count = Annotated[int, Bounds(0)]
Positive = Annotated[int, Bounds(1)]
Port = Annotated[int, Bounds(1, 65535)]
Text = Annotated[str, Form(".*", "text")]  # on a single line
_SIZE: Final = "[0-9]{1,15}[kmgtKMGT]"
_ADDRESSES: Final = 1 << 47  # address space of a process, in bytes
Size = Annotated[str, Form(_SIZE, "a size such as 512m or 2g, up to 128t"), SizeBounds(0, _ADDRESSES)]
# Spark requires a heap of 450 MiB, of which Java counts two thirds.
Heap = Annotated[str, Form(_SIZE, "a size from 700m on, such as 2g"), SizeBounds(700 << 20, _ADDRESSES)]
Master = Annotated[
    str,
    Form(
        r"local(\[(\*|[1-9][0-9]*)\])?|spark://[^\s/,:]+:[0-9]+(,[^\s/,:]+:[0-9]+)*|yarn|k8s://\S+",
        "local[*], local[2], spark://HOST:PORT, yarn or k8s://https://HOST:PORT",
    ),
]
Storage = Annotated[
    str,
    Form(
        r"[a-z][a-z0-9+.-]*://(?!\S*:\S*@)\S+",
        "the URL of a folder without a password, such as s3a://bucket/odf",
    ),
]
Signers = Annotated[
    str,
    Form(
        r"\s*[^\s,][^\s,]*\s*(,\s*[^\s,]+\s*)*",
        "names of trusted keys, keys, or owner, with commas between them, such as owner,alice",
    ),
]
Patterns = Annotated[
    str, Form(r"\s*[^\s,][^,]*(,\s*[^\s,][^,]*)*", "patterns with commas between them, such as a*,b; none for none")
]
Folders = Annotated[str, Form(r"\s*(/|~)[^,]*(,\s*(/|~)[^,]*)*", "absolute paths of folders with commas between them")]
Nodes = Annotated[str, Form(r"\s*[0-9]+=[^\s=].*", "chain ids with URLs, such as 1=https://node.example.com")]
Address = Annotated[str, Form(r"[^\s@<>,;:\"]+@[A-Za-z0-9.-]+", "an address such as odf@example.org")]
HttpUrl = Annotated[str, Form(r"https?://(?!\S*:\S*@)\S+", "an http or https URL without a password")]
Files = Annotated[
    str,
    Form(
        r"\s*(all|none|available|[^=;]+=[^=;]+(;[^=;]+=[^=;]+)*)\s*",
        "all, none, available or conditions such as what=syslog,nginx;since=2024-01-01",
    ),
]
Percent = Annotated[str, Form("100%|[0-9]{1,2}%", "a share such as 50%")]
DurationText = Annotated[str, Form(*DURATION_FORM)]
