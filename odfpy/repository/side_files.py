"""Side files of remote datasets, read concurrently because of latency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from odfpy.chain.stores.side_files import SideFiles
from odfpy.repository.objects import run_all


class RemoteSideFiles(SideFiles):
    """Remote side files: small files next to the chain, such as signatures."""

    def read_all(self, paths: Sequence[str], limit: int) -> dict[str, bytes]:
        found: dict[str, bytes | None] = dict.fromkeys(paths)

        def read(path: str) -> None:
            found[path] = self.read(path, limit)

        run_all([partial(read, path) for path in found])
        return {path: data for path, data in found.items() if data is not None}

    def write_all(self, files: Mapping[str, bytes]) -> None:
        run_all([partial(self.write, path, data) for path, data in files.items()])
