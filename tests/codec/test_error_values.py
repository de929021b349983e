"""Errors as values: whose sender may be a process in a sandbox, and need not tell the truth."""

from __future__ import annotations

import json
import pickle
from copy import copy, deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.engine.raised_errors import contents, error_classes, made_otherwise, sample

from odfpy.codec.errors import MAX_LENGTH, MODULE_OF, RaisedError, as_value, error_class, error_of, fields_of_error
from odfpy.codec.tree import TreeError, from_tree, to_tree
from odfpy.errors import (
    BadValue,
    DatasetNotFound,
    EngineError,
    FetchError,
    FetchInterrupted,
    IntegrityError,
    InternalError,
    MalformedManifest,
    NotFound,
    OdfError,
    UsageError,
    known_class,
)

ALL = error_classes()
each_class = pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)


# --- The same error, said in another place ---------------------------------------------------------------------------


@each_class
def test_an_error_with_context_is_of_its_class_and_keeps_its_fields(kind: type[OdfError]) -> None:
    error = sample(kind)
    found = error.with_context("com.example.rates", hint="of the context")
    message = f"com.example.rates: {error.message}"
    hint = error.hint or "of the context"
    fields = {**vars(error), "message": message, "hint": hint}
    assert contents(found) == (*contents(error)[:3], message, (message,), fields)
    assert contents(error) == contents(sample(kind))


@each_class
def test_only_an_error_without_a_hint_gets_that_of_the_context(kind: type[OdfError]) -> None:
    bare = sample(kind).with_message("m", hint=None)
    assert (bare.with_context("x", hint="h").hint, bare.with_context("x").hint) == ("h", None)


def test_the_chain_of_causes_is_kept() -> None:
    def work() -> None:
        try:
            raise sample(FetchInterrupted)
        except OdfError as error:
            raise error.with_context("here") from error

    with pytest.raises(FetchInterrupted, match=r"^here: ") as raised:
        work()
    cause = raised.value.__cause__
    assert isinstance(cause, FetchInterrupted)
    assert contents(cause) == contents(sample(FetchInterrupted))


@each_class
def test_errors_are_copied_and_pickled_whole(kind: type[OdfError]) -> None:
    """As multiprocessing does with what a function raises."""
    error = sample(kind)
    pickled = [pickle.loads(pickle.dumps(error, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
    assert [contents(one) for one in (copy(error), deepcopy(error), *pickled)] == [contents(error)] * (2 + len(pickled))


# --- Codes -----------------------------------------------------------------------------------------------------------


def test_a_code_that_is_taken_is_refused() -> None:
    with pytest.raises(InternalError, match=r"Another takes code E402, which is that of BadValue"):

        class Another(OdfError, code="E402"):
            """A class that comes too late."""

    assert known_class("E402") is BadValue


def test_every_class_is_where_the_table_says() -> None:
    found = {kind.code: kind.__module__ for kind in ALL}
    assert {code: MODULE_OF.get(code, "odfpy.errors") for code in found} == found
    assert MODULE_OF.keys() <= found.keys()
    assert [error_class(kind.code) for kind in ALL] == ALL


def test_a_code_of_no_class_is_none() -> None:
    assert [error_class(code) for code in ("E998", "", "odfpy.errors", "os")] == [None] * 4


def test_a_class_whose_module_cannot_be_loaded_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odfpy.codec.errors.MODULE_OF", {"E998": "odfpy.nowhere"})
    assert error_class("E998") is None


@each_class
def test_a_class_with_a_constructor_declares_what_it_has(kind: type[OdfError]) -> None:
    assert vars(sample(kind)).keys() == {"message", "hint", *fields_of_error(kind)}
    assert ("__init__" in vars(kind)) == (kind.__name__ in made_otherwise() or kind is OdfError)


def test_a_class_without_a_code_comes_out_as_the_one_that_has_it() -> None:
    class _Own(FetchError):
        """A class for one module."""

    assert contents(error_of(as_value(_Own("m", hint="h")))) == contents(FetchError("m", hint="h"))


# --- What others say -------------------------------------------------------------------------------------------------


@given(kind=st.sampled_from(ALL), message=st.text(), hint=st.none() | st.text())
def test_any_text_comes_through(kind: type[OdfError], message: str, hint: str | None) -> None:
    error = sample(kind).with_message(message, hint=hint)
    tree = json.loads(json.dumps(to_tree(as_value(error))))
    assert contents(error_of(from_tree(RaisedError, tree))) == contents(error)


def test_long_texts_are_cut() -> None:
    whole, long = "x" * MAX_LENGTH, "y" * (MAX_LENGTH + 1)
    assert vars(error_of(as_value(BadValue(whole, hint=whole)))) == {"message": whole, "hint": whole}
    for one in (as_value(BadValue(long, hint=long)), RaisedError("BadValue", long, long, "E402")):
        error = error_of(one)
        assert {len(error.message), len(error.hint or "")} == {MAX_LENGTH}
        assert error.message.endswith("y...")


@pytest.mark.parametrize(
    "fields",
    [
        None,
        "",
        "[]",
        "{",
        "[" * MAX_LENGTH,
        "{}",
        '{"retry_after":"soon"}',
        '{"retry_after":true}',
        '{"retry_after":NaN}',
        '{"retry_after":1e999}',
        '{"retry_after":[1]}',
        f'{{"retry_after":1,"more":"{"x" * MAX_LENGTH}"}}',
    ],
    ids=lambda fields: str(fields)[:30],
)
def test_an_error_whose_fields_do_not_fit_is_of_the_class_above(fields: str | None) -> None:
    error = error_of(RaisedError("FetchInterrupted", "m", "h", "E404", fields))
    assert contents(error) == contents(FetchError("m", hint="h"))


def test_only_declared_fields_are_taken() -> None:
    fields = '{"retry_after":1,"message":"other","code":"E000","exit_code":0,"__class__":"x","with_context":"x"}'
    error = error_of(RaisedError("FetchInterrupted", "m", None, "E404", fields))
    assert contents(error) == contents(FetchInterrupted("m", retry_after=1.0))


@pytest.mark.parametrize("path", ['[["a"]]', "[1.5]", '"a"', "[null]", '{"a":1}', "[true]"])
def test_parts_of_fields_are_checked_as_well(path: str) -> None:
    error = error_of(RaisedError("TreeError", "m", None, "E203", f'{{"path":{path},"problem":"p"}}'))
    assert type(error) is MalformedManifest


@pytest.mark.parametrize("details", ['{"a":1}', '["a"]', "null", '{"a":{}}'])
def test_so_are_values_of_mappings(details: str) -> None:
    error = error_of(RaisedError("VerificationFailed", "m", None, "E722", f'{{"kind":"k","details":{details}}}'))
    assert type(error) is IntegrityError


def test_an_unknown_code_is_an_error_of_the_engine_unless_somebody_knows_better() -> None:
    value = RaisedError("BadValue", "m", "h", "E998", '{"x":1}')
    assert contents(error_of(value)) == contents(EngineError("m", hint="h"))
    assert contents(error_of(value, NotFound)) == contents(NotFound("m", hint="h"))


@pytest.mark.parametrize("name", ["OdfError", "UsageError", "DatasetNotFound"])
def test_names_are_those_of_classes(name: str) -> None:
    assert type(error_of(RaisedError(name, "m"))) in (OdfError, UsageError, DatasetNotFound)


@pytest.mark.parametrize("name", ["did_you_mean", "named", "Enum", "TypeVar", "__name__", "TYPE_CHECKING", "os.system"])
def test_other_names_of_the_module_are_none(name: str) -> None:
    assert type(error_of(RaisedError(name, "m"))) is EngineError


def test_what_cannot_be_written_costs_the_fields_and_not_the_error() -> None:
    error = error_of(as_value(TreeError((b"x",), "p")))  # type: ignore[arg-type]
    assert (type(error), error.message) == (MalformedManifest, str(error))
    assert as_value(TreeError(("x" * MAX_LENGTH,), "p")).fields is None
