"""Attacks one target with atheris, which is guided by the lines that an input reaches.

python -m support.attack.child TARGET SECONDS FOLDER

Exits with 0 if nothing was found. Findings are in the folder as `crash-...`, `timeout-...` or `oom-...`.
"""

from __future__ import annotations

import hashlib
import logging
import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["odfpy"]):
    from support.attack.targets import TARGETS, corpus


def main() -> None:
    """Attack it."""
    name, seconds, place = sys.argv[1:]
    logging.disable()
    folder = Path(place)
    inputs = folder / "corpus"
    inputs.mkdir(parents=True, exist_ok=True)
    for data in corpus(name):
        (inputs / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
    target = TARGETS[name]
    options = {
        "max_total_time": seconds,
        "timeout": 20,
        "rss_limit_mb": 2048,
        "max_len": target.most_bytes,
        "artifact_prefix": f"{folder}/",
        "print_final_stats": 1,
        "verbosity": 0,
    }
    arguments = [f"-{option}={value}" for option, value in options.items()]
    atheris.Setup([sys.argv[0], *arguments, str(inputs)], target.tried)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
