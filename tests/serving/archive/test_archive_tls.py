"""An archive on a server that speaks HTTPS, from the command line; and one that does not speak as it should."""

from __future__ import annotations

import os
import socketserver
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from support.archive.served import serve_in
from support.servers.certificates import self_signed

from odfpy.archive import open_archive
from odfpy.errors import TransferError
from odfpy.repository.credentials import VARIABLE
from odfpy.serving.http.tls import Tls


def test_files_are_pushed_found_and_fetched(tmp_path: Path) -> None:
    certificate, key = self_signed(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    contents = {"small.log": b"small", "large.log": os.urandom(3 << 20)}
    for name, data in contents.items():
        (elsewhere / name).write_bytes(data)
    for served in serve_in(tmp_path, Tls(certificate, key)):
        known = {**os.environ, "SSL_CERT_FILE": str(certificate), VARIABLE: served.writer.token or ""}

        # Each in a separate process, which ends its connections.
        def odf(*arguments: str, stdin: str = "", known: dict[str, str] = known) -> list[str]:
            command = [sys.executable, "-m", "odfpy", "archive", *arguments]
            done = subprocess.run(
                command, input=stdin, env=known, cwd=elsewhere, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr
            return done.stdout.splitlines()

        where = ("--archive", served.url)
        assert served.url.startswith("https://")
        odf("push", *contents, "--what", "nginx", "--where", "web1", "--start", "2024-03-01", *where)
        listed = odf("list", "nginx", "--start", "2024-03-01", *where)
        assert len(listed) == 2
        assert odf("latest", "nginx", "web1", "--lookback", "99999", *where)[0] in listed
        odf("fetch", "--to", "fetched", "--filename-template", "{name}", stdin="\n".join(listed))
        assert {name: (elsewhere / "fetched" / name).read_bytes() for name in contents} == contents


def test_who_does_not_speak_the_protocol_is_given_up_soon() -> None:
    """As a server that wants HTTPS does, whoever is there ends every connection."""
    with socketserver.TCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler) as silent:
        threading.Thread(target=silent.serve_forever).start()
        try:
            archive = open_archive(f"http://127.0.0.1:{silent.server_address[1]}/logs", token="x")
            with pytest.raises(TransferError, match=r"without an answer \(tried 4 times\)"):
                archive.latest("nginx", "web1")
        finally:
            silent.shutdown()
