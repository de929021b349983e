"""Program that runs a command which may only read given files, and write to one folder.

python -I locked.py FOLDER READS... -- COMMAND...

It is a separate program: the process that starts it has threads, and rights cannot be regained.
"""

from __future__ import annotations

import os
import sys

_CANNOT_RUN = 126
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


def main(arguments: list[str]) -> int:
    """Give up all other rights, then execute the command."""
    from odfpy.sandbox.landlock import restrict_files

    end = arguments.index("--")
    folder, *reads = arguments[:end]
    command = arguments[end + 1 :]
    try:
        restrict_files(reads, [folder, *_DEVICES])
        os.execvp(command[0], command)  # noqa: S606 - deliberately without a shell
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
    return _CANNOT_RUN


if __name__ == "__main__":
    # Isolated Python does not have this folder on its path, and imports no module from the folder of the script.
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))  # noqa: PTH100, PTH120
    raise SystemExit(main(sys.argv[1:]))
