"""Reading a chain is light: what only writers and data need stays out of the process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support.fixtures import KAMU

REPOSITORY = Path(__file__).resolve().parents[2]
HEAVY = (
    "flatbuffers",
    "numpy",
    "pyarrow",
    "pandas",
    "multiformats",
    "blake3",
    "cryptography",
    "duckdb",
    "pyspark",
    "datafusion",
)


def loaded_after(program: str) -> set[str]:
    """Which of the heavy libraries a fresh interpreter has loaded after a program."""
    report = f"import sys; print(*(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\n{report}"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_importing_the_chain():
    assert loaded_after("import odfpy.chain.metadata_chain, odfpy.chain.layout, odfpy.chain.encoding") == set()


def test_reading_validating_and_printing_a_chain():
    program = f"""
from pathlib import Path
from odfpy.chain.encoding import block_document
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.new_blocks import validate
from odfpy.codec.yaml import dump

for folder in Path({str(KAMU)!r}).glob("*/refs"):
    blocks = DatasetLayout.local(folder.parent).chain.in_order()
    validate(blocks)
    [dump(block_document(hashed)) for hashed in blocks]
"""
    assert loaded_after(program) == set()


def test_reading_manifests():
    program = f"""
from pathlib import Path
from odfpy.chain.encoding import load_snapshots

for path in Path({str(KAMU)!r}).glob("manifests/*"):
    load_snapshots(path.read_text(), str(path))
"""
    assert loaded_after(program) == set()


def test_hashes_in_other_bases_cost_a_library():
    assert loaded_after("from odfpy.data.multihash import decode_multibase; decode_multibase('z2g')") == {
        "multiformats"
    }
