"""Writes what the engine emits into the corpus: `python tests/engine_queries/record_corpus.py FILE... [--only NAME]`.

For new cases, and for changes that are meant. Read the difference before it is committed: the tables are what people
check against the definition of each class, and the oracle only checks what they sum up to.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.engine.session import engine_spark
from support.queries.cases import LOCK, Made, locked, read_cases, run_case


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--only", action="append")
    options = parser.parse_args()
    hashes = locked()
    with TemporaryDirectory() as folder, engine_spark(Path(folder)) as spark:
        for path in options.files:
            texts = list(yaml.load_all(path.read_text("utf-8"), yaml.BaseLoader))
            for text, case in zip(texts, read_cases(path), strict=True):
                if options.only and case.name not in options.only:
                    continue
                made = run_case(spark, case, _made(Path(folder) / case.name))
                _put(text, made)
                hashes[case.name] = [one.logical_hash or "none" for one in made]
            path.write_text("".join(map(_written, texts)), "utf-8")
    LOCK.write_text(yaml.safe_dump(hashes, sort_keys=True, width=200), "utf-8")


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _put(text: dict[str, Any], made: list[Made]) -> None:
    text["columns"] = " ".join(made[0].columns)
    for pull, one in zip(text["pulls"], made, strict=True):
        pull["output"] = "\n".join(one.lines)
        pull.pop("reaches", None)
        if one.reaches is not None:
            pull["reaches"] = one.reaches


def _written(text: dict[str, Any]) -> str:
    out = ["---", f"name: {text['name']}", f"about: {_flow(text['about'])}"]
    if isinstance(text["query"], str):
        out += ["query: |", _indented(text["query"])]
    else:
        out.append("query:")
        for alias, query in text["query"].items():
            out += [f"  {alias or _flow('')}: |", _indented(query, 4)]
    out.append(f"inputs: {_flow(text['inputs'])}")
    if "closed" in text:
        out += ["closed:", *(f"  {name}: {_flow(condition)}" for name, condition in text["closed"].items())]
    out += [f"columns: {text.get('columns', '')}", "pulls:"]
    for pull in text["pulls"]:
        lines = [f"watermarks: {_flow(pull['watermarks'])}"] if "watermarks" in pull else []
        for name in [*text["inputs"], "output"]:
            if pull.get(name):
                lines += [f"{name}: |", _indented(pull[name])]
        if "reaches" in pull:
            lines.append(f"reaches: {pull['reaches']}")
        (first, *rest) = "\n".join(lines).splitlines()
        out += [f"- {first}", *(f"  {line}" for line in rest)]
    return "\n".join(out) + "\n"


def _indented(text: str, by: int = 2) -> str:
    return "\n".join(" " * by + line for line in text.rstrip().splitlines())


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(one)}" for key, one in value.items()) + "}"
    plain = value and not set(value) & set("{}[],&*#?|<>=!%@`'\"") and ": " not in value and not value.startswith("-")
    return value if plain else '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


if __name__ == "__main__":
    main()
