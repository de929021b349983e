"""Connection to a cluster: which machine to contact, whether it responds, and at which address it reaches us.

All of this is determined before Java starts, so that a wrong setting is reported at once: Spark itself retries a
missing master for a minute, and lets executors search for an unreachable driver for longer.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from odfpy.engine.settings import EngineSettings
from odfpy.engine.spark.process.settings import GUARDS, JVM_OPTIONS, TUNING
from odfpy.errors import EngineUnavailable
from odfpy.sandbox.python import PROGRAM
from odfpy.values import dataclass

PAGE: Final = "docs/cluster.md says what a cluster needs."
HADOOP_FOLDERS: Final = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
"""Where YARN's address is."""

CLUSTER_VARIABLES: Final = (*HADOOP_FOLDERS, "HADOOP_USER_NAME", "KRB5CCNAME", "KRB5_CONFIG", "KUBECONFIG")
"""Environment variables passed to a worker for finding a cluster: names of files, and of the user."""

_CONNECT_SECONDS: Final = 5.0
_PORTS: Final = {"http": 80, "https": 443}
_PROPERTY: Final = re.compile(r"\s*([^\s=:#!][^\s=:]*)(?:\s*[=:]\s*|\s+)(.*?)\s*")
_OPTIONS: Final = "spark.executor.extraJavaOptions"
# Set by our own settings, so that each has only one source.
_OURS: Final = frozenset(("spark.master", "spark.submit.deployMode", "spark.driver.memory", "spark.app.name"))


@dataclass(frozen=True, slots=True)
class Cluster:
    """The facts about a cluster that are known before Spark starts.

    Attributes:
        master: its address, in Spark's notation.
        host: our address as its executors see it; None where Spark finds it out.
        properties: the user's properties for it.
        file: where that is from.
    """

    master: str
    host: str | None
    properties: Mapping[str, str]
    file: str | None

    @property
    def arguments(self) -> tuple[str, ...]:
        """Arguments of Spark's launcher."""
        file = () if self.file is None else ("--properties-file", self.file)
        return ("--master", self.master, "--deploy-mode", "client", *file)

    def places(self) -> dict[str, str]:
        """Return Spark's settings for it: executors have our functions, the same Python, and Java's pinned options."""
        own = {
            "spark.pyspark.python": PROGRAM,
            # A second copy of a slow task, as Spark would start it, is useless.
            "spark.speculation": "false",
        }
        if self.host is not None:
            own |= {"spark.driver.host": self.host, "spark.driver.bindAddress": self.host}
        options = " ".join(filter(None, (self.properties.get(_OPTIONS), *JVM_OPTIONS, *GUARDS)))
        return {**own, **self.properties, _OPTIONS: options}


def find_cluster(settings: EngineSettings) -> Cluster:
    """Return the cluster of some settings.

    Raises:
        EngineUnavailable: it does not respond, cannot reach us, or its settings are invalid.
    """
    properties = {} if settings.properties is None else read_properties(Path(settings.properties))
    address = _way_to(settings.master)
    host = settings.host or address
    if address is not None and _is_loopback(host or "") and not _is_loopback(address):
        raise EngineUnavailable(
            f"The executors of {settings.master} cannot reach this machine at {host}, which is an address of their own",
            hint=f"odf config set engine.host {address}",
        )
    return Cluster(settings.master, host, properties, settings.properties)


def _way_to(master: str) -> str | None:
    """Return our address on the route to a cluster, None if Spark has to find out."""
    if master == "yarn":
        if not any(os.environ.get(name) for name in HADOOP_FOLDERS):
            raise EngineUnavailable(
                "Where YARN is, the files of HADOOP_CONF_DIR or YARN_CONF_DIR say, and neither is set",
                hint=f"Set HADOOP_CONF_DIR to the folder with yarn-site.xml and core-site.xml. {PAGE}",
            )
        return None
    troubles = []
    for host, port in _machines(master):
        try:
            with closing(socket.create_connection((host, port), _CONNECT_SECONDS)) as connection:
                own: str = connection.getsockname()[0]
                return own
        except (OSError, UnicodeError) as error:
            troubles.append(f"{host}:{port}: {getattr(error, 'strerror', None) or error}")
    if not troubles:
        raise EngineUnavailable(
            f"{master!r} is not an address of a cluster",
            hint="engine.master is local[*], spark://HOST:PORT, yarn or k8s://https://HOST:PORT.",
        )
    raise EngineUnavailable(
        f"No cluster answers at {master} ({'; '.join(troubles)})",
        hint="Start its master, or set another address: odf config set engine.master ADDRESS; "
        "`local[*]` uses this machine.",
    )


def _machines(master: str) -> list[tuple[str, int]]:
    """Return the hosts and ports of the master."""
    kind, _, rest = master.partition("://")
    try:
        if kind == "spark":
            parts = [urlsplit(f"//{part}") for part in rest.split(",")]
            return [(part.hostname, part.port) for part in parts if part.hostname and part.port]
        if kind == "k8s":
            url = urlsplit(rest if "://" in rest else f"https://{rest}")
            return [(url.hostname, url.port or _PORTS[url.scheme])] if url.hostname else []
    except (ValueError, KeyError):
        pass
    return []


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


def read_properties(path: Path) -> dict[str, str]:
    """Parse a file of Spark properties.

    Raises:
        EngineUnavailable: it cannot be read, or sets forbidden properties.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise EngineUnavailable(
            f"Cannot read the properties of the cluster {path}: {reason}",
            hint="odf config set engine.properties FILE, or `odf config unset engine.properties`.",
        ) from error
    properties = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith(("#", "!")):
            continue
        match = _PROPERTY.fullmatch(line)
        if match is None or not match[1].startswith("spark."):
            raise EngineUnavailable(
                f"{path}, line {number} is not a property of Spark",
                hint="A line is a name and a value, for example: spark.executor.memory 4g",
            )
        if match[1] in _OURS or (match[1].startswith("spark.sql.") and match[1] not in TUNING):
            raise EngineUnavailable(
                f"{path}, line {number}: {match[1]} cannot be set in this file",
                hint="Results may depend on it, or a setting of odf has it: see `odf config list`.",
            )
        properties[match[1]] = match[2]
    return properties
