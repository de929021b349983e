"""A random walk through an object store and an in-memory model in parallel."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from odfpy.chain.stores.object_store import MemoryObjectStore, ObjectStore, ObjectTooLarge
from odfpy.data.multihash import BLAKE3, SHA3_256, HashAlgorithm, Multihash
from odfpy.errors import HashMismatch, ObjectNotFound

_CONTENTS = st.binary(max_size=8)


class ObjectStoreMachine(RuleBasedStateMachine):
    """Applies the same operations to both stores, and compares them after every step; subclasses implement `make`."""

    names = Bundle("names")

    def __init__(self) -> None:
        super().__init__()
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = Path(self.scratch.name)
        self.model = MemoryObjectStore()
        self.store = self.make(self.folder / "store")

    def make(self, folder: Path) -> ObjectStore:
        """Create an empty store."""
        raise NotImplementedError

    def teardown(self) -> None:
        """Remove the temporary files."""
        self.scratch.cleanup()

    @rule(target=names, data=_CONTENTS, algorithm=st.sampled_from([SHA3_256, BLAKE3]))
    def name(self, data: bytes, algorithm: HashAlgorithm) -> Multihash:
        """Create a name that may or may not be in the store."""
        return Multihash.of(data, algorithm)

    @rule(target=names, data=_CONTENTS, algorithm=st.sampled_from([SHA3_256, BLAKE3]))
    def insert(self, data: bytes, algorithm: HashAlgorithm) -> Multihash:
        """Insert bytes."""
        name = self.store.insert(data, algorithm)
        assert name == self.model.insert(data, algorithm)
        return name

    @rule(name=names, data=_CONTENTS, size=st.none() | st.integers(0, 9))
    def insert_stream(self, name: Multihash, data: bytes, size: int | None) -> None:
        """Insert a stream that may have a wrong hash or exceed its size.

        Args:
            name: the announced hash.
            data: the bytes.
            size: the announced size.
        """
        outcomes = []
        for store in (self.store, self.model):
            try:
                store.insert_stream(io.BytesIO(data), name, size=size)
                outcomes.append("stored")
            except (HashMismatch, ObjectTooLarge) as error:
                outcomes.append(type(error).__name__)
        assert outcomes[0] == outcomes[1]

    @rule(target=names, data=_CONTENTS)
    def insert_file(self, data: bytes) -> Multihash:
        """Insert a file."""
        name = Multihash.of(data)
        for number, store in enumerate((self.store, self.model)):
            file = self.folder / f"file-{number}"
            file.write_bytes(data)
            store.insert_file(file, name)
            assert not file.exists()
        return name

    @rule(name=names)
    def delete(self, name: Multihash) -> None:
        """Delete an object that may or may not exist."""
        self.store.delete(name)
        self.model.delete(name)

    @rule(name=names)
    def read(self, name: Multihash) -> None:
        """Read an object that may or may not exist."""
        assert (name in self.store) == (name in self.model)
        if name in self.model:
            assert self.store.read(name) == self.model.read(name)
            assert self.store.size(name) == self.model.size(name)
        else:
            with pytest.raises(ObjectNotFound):
                self.store.read(name)

    @rule()
    def reopen(self) -> None:
        """Check that another instance sees the same content."""
        if self.store.local_path(Multihash.of(b"")) is not None:
            self.store = self.make(self.folder / "store")

    @invariant()
    def both_hold_the_same(self) -> None:
        """Compare both stores after every step."""
        assert set(self.store) == set(self.model)
