"""The view of an executor: the one function that runs there before anything is known of it.

It is sent by value, since odfpy may be missing there, and uses nothing but Python's own library.
"""

from __future__ import annotations


def describe_executor(folder: str | None, token: str) -> dict[str, str | None]:
    """Return how things are where this runs.

    Args:
        folder: the scratch folder of the engine, with a file `token` in it; None to skip it.
        token: content of the file.

    Returns:
        `who` it is; versions by name of package, None for a missing one; `trouble` with the folder, if any;
        `wrote`, the name of a file that was created there.
    """
    import getpass
    import importlib
    import os
    import platform
    import socket
    import uuid

    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    view: dict[str, str | None] = {"who": f"{user}@{socket.gethostname()}", "python": platform.python_version()}
    for package in ("odfpy", "pyarrow", "numpy", "pandas"):
        try:
            view[package] = str(importlib.import_module(package).__version__)
        except ImportError:
            view[package] = None
    view["trouble"] = view["wrote"] = None
    if folder is None:
        return view
    name = f"seen-{uuid.uuid4().hex}"
    try:
        with open(os.path.join(folder, "token"), encoding="utf-8") as file:  # noqa: PTH118, PTH123
            if file.read() != token:
                view["trouble"] = "it has another folder of that name"
                return view
    except OSError as error:
        view["trouble"] = f"it does not see it ({error.strerror})"
        return view
    try:
        with open(os.path.join(folder, name), "x", encoding="utf-8"):  # noqa: PTH118, PTH123
            view["wrote"] = name
    except OSError as error:
        view["trouble"] = f"it cannot write there ({error.strerror})"
    return view
