"""Classes of values behave as those that the standard library makes."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import FrozenInstanceError, field
from typing import Any, ClassVar

import pytest

from odfpy import values

MAKERS = (dataclasses.dataclass, values.dataclass)


def made(maker: Any) -> dict[str, type]:
    """The same classes, by one of the makers."""

    @maker(frozen=True, slots=True)
    class Empty:
        """Nothing."""

    @maker(frozen=True, slots=True)
    class One:
        """A single field."""

        a: object

    @maker(frozen=True, slots=True)
    class Point:
        """Fields with and without defaults, some of which nobody sees."""

        KIND: ClassVar[str] = "point"
        x: int
        y: int = 2
        tags: list[str] = field(default_factory=list, compare=False)
        hidden: str = field(default="h", repr=False)
        loose: int = field(default=0, hash=False)

        def shifted(self) -> Any:
            return dataclasses.replace(self, x=self.x + 1)

    @maker(frozen=True, slots=True)
    class Solid(Point):
        """One that inherits, and adds a field."""

        z: int = 3

    @maker(frozen=True, slots=True, kw_only=True)
    class Named:
        """Fields that are given by name, the required after those that are not."""

        a: int = 1
        b: str

    @maker(frozen=True, slots=True)
    class Checked:
        """A value that is checked, and has more than it is given."""

        a: int
        twice: int = field(init=False)
        fixed: int = field(default=7, init=False)

        def __post_init__(self) -> None:
            if self.a < 0:
                raise ValueError("negative")
            object.__setattr__(self, "twice", 2 * self.a)

    @maker(frozen=True, slots=True)
    class Own:
        """Methods of its own stay."""

        a: int

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own)

        def __hash__(self) -> int:
            return 5

    @maker(frozen=True, slots=True)
    class OnlyEqual:  # noqa: PLW1641 - its maker adds what is missing
        """With `__eq__` alone, the hash is that of the fields."""

        a: int

        def __eq__(self, other: object) -> bool:
            return other is not None

    classes = (Empty, One, Point, Solid, Named, Checked, Own, OnlyEqual)
    return {cls.__name__: cls for cls in classes}


CLASSES = [made(maker) for maker in MAKERS]

CALLS = [
    ("Empty", (), {}),
    ("Empty", (1,), {}),
    ("One", (1,), {}),
    ("One", ([1],), {}),
    ("One", (float("nan"),), {}),
    ("One", (), {}),
    ("Point", (1,), {}),
    ("Point", (1, 3), {"tags": ["a"]}),
    ("Point", (1,), {"hidden": "x"}),
    ("Point", (1,), {"loose": 8}),
    ("Point", (1, 2, 3, 4, 5, 6), {}),
    ("Point", (1,), {"other": 1}),
    ("Solid", (1,), {"z": 4}),
    ("Solid", (1, 2, [], "h", 0, 3), {}),
    ("Named", (), {"b": "x"}),
    ("Named", ("x",), {}),
    ("Named", (), {}),
    ("Checked", (4,), {}),
    ("Checked", (-4,), {}),
    ("Own", (1,), {}),
    ("OnlyEqual", (1,), {}),
]


def outcome(work: Any, *given: Any, **named: Any) -> object:
    """What comes of a call, or what kind of error."""
    try:
        return work(*given, **named)
    except (TypeError, ValueError, AttributeError) as error:
        return type(error)


def observed(cls: type, given: tuple[Any, ...], named: dict[str, Any]) -> object:
    """All that may be seen of a value."""
    value = outcome(cls, *given, **named)
    if isinstance(value, type):
        return value
    names = [field.name for field in dataclasses.fields(value)]
    return (
        repr(value),
        outcome(hash, value),
        [getattr(value, name) for name in names],
        [value == outcome(cls, *other, **more) for name, other, more in CALLS if name == cls.__name__],
        value == copy.copy(value),
        repr(copy.deepcopy(value)),
        [outcome(setattr, value, name, 1) for name in [*names, "unknown"][:-1]],
        [outcome(delattr, value, name) for name in names],
        hasattr(value, "__dict__"),
        cls.__match_args__,
        cls.__slots__,
        cls.__doc__,
        cls.__init__.__annotations__,
        cls.__init__.__qualname__,
        dataclasses.asdict(value),
    )


@pytest.mark.parametrize(("name", "given", "named"), CALLS)
def test_a_value_is_as_the_standard_library_makes_it(name, given, named):
    theirs, ours = (observed(classes[name], given, named) for classes in CLASSES)
    assert ours == theirs


@pytest.mark.parametrize("name", CLASSES[0])
def test_fields_are_those_of_the_standard_library(name):
    theirs, ours = (
        [(each.name, each.type, each.default, each.init, each.repr, each.compare, each.hash, each.kw_only)
         for each in dataclasses.fields(classes[name])]
        for classes in CLASSES
    )  # fmt: skip
    assert ours == theirs


@values.dataclass(frozen=True, slots=True)
class Kept:
    """A value at the top of a module, so that pickle finds it."""

    a: int
    b: tuple[int, ...] = ()


class Plain(Kept):
    """A class that is not dataclass may have attributes of its own."""


def test_values_survive_pickle_and_copies():
    value = Kept(1, (2, 3))
    assert pickle.loads(pickle.dumps(value)) == value
    assert copy.copy(value) == copy.deepcopy(value) == value
    assert dataclasses.replace(value, a=5) == Kept(5, (2, 3))
    match value:
        case Kept(1, (2, 3)):
            pass
        case _:
            pytest.fail("match does not see the fields")


def test_nothing_can_be_changed():
    value = Kept(1)
    for name in ("a", "b", "c"):
        with pytest.raises(FrozenInstanceError, match=f"cannot assign to field '{name}'"):
            setattr(value, name, 1)
        with pytest.raises(FrozenInstanceError, match=f"cannot delete field '{name}'"):
            delattr(value, name)
    plain = Plain(1)
    plain.c = 2
    assert plain.c == 2
    del plain.c
    with pytest.raises(FrozenInstanceError):
        plain.a = 2


def test_a_default_that_is_made_is_made_each_time():
    point = CLASSES[1]["Point"]
    assert point(1).tags is not point(1).tags


def test_a_value_that_holds_itself_can_be_shown():
    items: list[object] = []
    value = CLASSES[1]["One"](items)
    items.append(value)
    assert repr(value) == "made.<locals>.One(a=[...])"


def test_other_classes_are_left_to_the_standard_library():
    @values.dataclass
    class Loose:
        a: int = 1

    @values.dataclass(frozen=True, slots=True, order=True)
    class Ordered:
        a: int

    loose = Loose()
    loose.a = 2
    assert loose == Loose(2)
    assert Ordered(1) < Ordered(2)


def test_parameters_are_known_before_the_first_value():
    unused = made(values.dataclass)
    for name, cls in made(dataclasses.dataclass).items():
        assert inspect.signature(unused[name]).parameters.keys() == inspect.signature(cls).parameters.keys()
        assert inspect.signature(unused[name].__init__).return_annotation is None
