"""A random walk through an object store, side by side with the in-memory model."""

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
    """Does the same to both stores and compares them after every step; subclasses say how to `make` the store."""

    names = Bundle("names")

    def __init__(self) -> None:
        super().__init__()
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = Path(self.scratch.name)
        self.model = MemoryObjectStore()
        self.store = self.make(self.folder / "store")

    def make(self, folder: Path) -> ObjectStore:
        """An empty store."""
        raise NotImplementedError

    def teardown(self) -> None:
        """Remove what the walk left."""
        self.scratch.cleanup()

    @rule(target=names, data=_CONTENTS, algorithm=st.sampled_from([SHA3_256, BLAKE3]))
    def name(self, data: bytes, algorithm: HashAlgorithm) -> Multihash:
        """A name that may be in the store or not."""
        return Multihash.of(data, algorithm)

    @rule(target=names, data=_CONTENTS, algorithm=st.sampled_from([SHA3_256, BLAKE3]))
    def insert(self, data: bytes, algorithm: HashAlgorithm) -> Multihash:
        """Bytes."""
        name = self.store.insert(data, algorithm)
        assert name == self.model.insert(data, algorithm)
        return name

    @rule(name=names, data=_CONTENTS, size=st.none() | st.integers(0, 9))
    def insert_stream(self, name: Multihash, data: bytes, size: int | None) -> None:
        """A stream that may have another hash or be too long.

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
        """A file."""
        name = Multihash.of(data)
        for number, store in enumerate((self.store, self.model)):
            file = self.folder / f"file-{number}"
            file.write_bytes(data)
            store.insert_file(file, name)
            assert not file.exists()
        return name

    @rule(name=names)
    def delete(self, name: Multihash) -> None:
        """An object that may be there or not."""
        self.store.delete(name)
        self.model.delete(name)

    @rule(name=names)
    def read(self, name: Multihash) -> None:
        """An object that may be there or not."""
        assert (name in self.store) == (name in self.model)
        if name in self.model:
            assert self.store.read(name) == self.model.read(name)
            assert self.store.size(name) == self.model.size(name)
        else:
            with pytest.raises(ObjectNotFound):
                self.store.read(name)

    @rule()
    def reopen(self) -> None:
        """Another process sees the same."""
        if self.store.local_path(Multihash.of(b"")) is not None:
            self.store = self.make(self.folder / "store")

    @invariant()
    def both_hold_the_same(self) -> None:
        """After every step."""
        assert set(self.store) == set(self.model)
