"""What a server says of an error, as the error that it is."""

from __future__ import annotations

import pytest
from support.engine.raised_errors import error_classes

from odfpy.client.remote_errors import error_of, of_code
from odfpy.errors import EngineError, OdfError

ALL = error_classes()
WITH_FIELDS = {"EndedKey", "FetchInterrupted", "InvalidCommitment", "OverBudget", "PeerClosed", "RecordRefused"} | {
    "Refusal",
    "TreeError",
    "VerificationFailed",
}


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_a_refusal_with_a_code_is_of_its_class(kind: type[OdfError]) -> None:
    """Of the nearest class above without fields: servers send none."""
    wanted = next(one for one in kind.__mro__ if one.__name__ not in WITH_FIELDS)
    found = error_of(f"no room [{kind.code}]\nhint: Make some.", EngineError)
    assert (type(found), found.message, found.hint) == (wanted, "no room", "Make some.")


@pytest.mark.parametrize("text", ["no room", "no room [E998]"])
def test_other_texts_are_of_the_class_that_the_status_says(text: str) -> None:
    found = error_of(text, EngineError)
    assert (type(found), found.message) == (EngineError, "no room")


def test_an_error_without_a_hint() -> None:
    assert of_code("E460", EngineError, "no room").hint is None
