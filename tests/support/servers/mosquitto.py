"""A real MQTT broker on the loopback interface: mosquitto, of Debian's package of that name."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from paho.mqtt import publish

PATIENCE = 300.0
_FOLDERS = ("/usr/sbin", "/usr/local/sbin", "/opt/homebrew/sbin")


class Broker:
    """A broker.

    Attributes:
        port: where it listens.
    """

    def __init__(self, program: str, folder: Path, settings: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        folder.mkdir(parents=True, exist_ok=True)
        config = folder / "mosquitto.conf"
        # As root, the broker would change to its own user, who cannot read the tests' files.
        config.write_text(f"user root\nlistener {self.port} 127.0.0.1\npersistence false\n{settings}\n")
        self._log = folder / "log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen([program, "-c", str(config)], stdout=log, stderr=log)

    def wait(self) -> bool:
        """Wait until it responds; False if it exits instead."""
        deadline = time.monotonic() + PATIENCE
        while "running" not in self.log:
            if self._process.poll() is not None or time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        return True

    def publish(
        self, topic: str, *payloads: str, qos: int = 1, retain: bool = False, ca: Path | None = None, **who: str
    ) -> None:
        """Send messages, and wait until the broker has them."""
        messages = [(topic, payload, qos, retain) for payload in payloads]
        tls = None if ca is None else {"ca_certs": str(ca)}
        publish.multiple(messages, hostname="127.0.0.1", port=self.port, auth=who or None, tls=tls)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()

    def stop_after(self, text: str) -> None:
        """Stop as soon as the log has some text."""
        deadline = time.monotonic() + PATIENCE
        while text not in self.log and time.monotonic() < deadline:
            time.sleep(0.005)
        self.stop()

    @property
    def log(self) -> str:
        return self._log.read_text()


@contextmanager
def mosquitto(folder: Path, settings: str = "allow_anonymous true") -> Iterator[Broker]:
    """Run a broker, which forgets everything on exit."""
    program = program_of("mosquitto")
    for attempt in range(5):  # another process may take the port before the broker does
        broker = Broker(program, folder / str(attempt), settings)
        if broker.wait():
            break
        broker.stop()
    else:
        pytest.fail(f"mosquitto does not start:\n{broker.log}")
    try:
        yield broker
    finally:
        broker.stop()


def program_of(name: str) -> str:
    """Return where a program of the package is."""
    found = shutil.which(name) or next(filter(None, (shutil.which(name, path=folder) for folder in _FOLDERS)), None)
    if found is None:
        pytest.fail(f"These tests need the program {name}. Run .ci/packages, or: apt-get install mosquitto")
    return found
