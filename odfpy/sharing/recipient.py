"""A client for the one request that other clients of shared tables lack: the proof of a version."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from odfpy.errors import NotFound, OdfError, UsageError
from odfpy.http.client import HttpClient
from odfpy.sharing.names import SharePath
from odfpy.sharing.profile import VERSIONS

_MAX_SIZE: Final = 10_000_000
_PATIENCE: Final = 600.0  # the server reads the complete version before it responds


class UnusableProfile(UsageError, code="E765"):
    """A profile file is invalid, or its server returns no proof."""


@dataclass(frozen=True, slots=True)
class SharedTableUrl:
    """A table in the notation of the protocol's clients: `acme.share#sales.eu.orders`.

    Attributes:
        profile: path of the profile file.
        path: share, schema and table.
    """

    profile: Path
    path: SharePath

    @classmethod
    def parse(cls, text: str) -> SharedTableUrl | None:
        """Parse this notation; return None for a text without `#`, or for an existing file.

        Raises:
            UsageError: the text does not name a table.
        """
        profile, mark, table = text.rpartition("#")
        if not mark or Path(text).exists():
            return None
        path = SharePath.parse(table)
        if path.table is None:
            raise UsageError(f"{text}: {table} is not a table", hint="Write PROFILE#SHARE.SCHEMA.TABLE.")
        return cls(Path(profile), path)

    def proof(self, version: int | None = None) -> bytes:
        """Request the signed statement of a version from the server.

        Args:
            version: number of the version, None for the newest.

        Raises:
            NotFound: the profile file does not exist.
            UnusableProfile: the profile file is invalid, or the server returns no proof.
        """
        endpoint, token = self._profile()
        names = (self.path.share, self.path.schema or "", self.path.table or "")
        share, schema, table = (quote(name, safe="") for name in names)
        url = f"{endpoint.rstrip('/')}/shares/{share}/schemas/{schema}/tables/{table}/proof"
        body = {} if version is None else {"version": version}
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        client = HttpClient(UnusableProfile, timeout=_PATIENCE)
        with client.post(url, json.dumps(body).encode(), headers, max_size=_MAX_SIZE) as answer:
            text, status = answer.read(), answer.status
        if status == 200:
            return text
        raise UnusableProfile(
            f"{endpoint} gives no proof of {self.path}: {_problem(text) or f'status {status}'}",
            hint="Check the table and the version. Servers other than `odf serve` have no proofs: ask the publisher.",
        )

    def _profile(self) -> tuple[str, str]:
        try:
            tree = json.loads(self.profile.read_bytes())
            endpoint, token = tree["endpoint"], tree["bearerToken"]
            if tree["shareCredentialsVersion"] in VERSIONS and isinstance(endpoint, str) and isinstance(token, str):
                return endpoint, token
        except FileNotFoundError:
            raise NotFound(f"No such file: {self.profile}") from None
        except OSError as error:
            raise OdfError(f"Cannot read {self.profile}: {error.strerror}") from error
        except (ValueError, KeyError, TypeError, RecursionError):
            pass
        raise UnusableProfile(f"{self.profile} is not a profile file with a token", hint="Ask the publisher for one.")


def _problem(text: bytes) -> str:
    """Return the message of a protocol error; empty if the text is no such error."""
    try:
        message = json.loads(text)["message"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return message if isinstance(message, str) else ""
