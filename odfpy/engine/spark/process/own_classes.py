"""Our own Java classes: their source is compiled when Spark starts, by Spark's compiler."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway, JavaObject

_FOLDER: Final = "odfpy.engine.spark.process"
_PACKAGE: Final = "odfpy"
_NAMES: Final = "first_classes.txt"


class OwnClass:
    """A class with one constructor, which has one argument.

    Args of the constructor: `gateway` leads to Java, `name` is the class's, and its file's.
    """

    def __init__(self, gateway: JavaGateway, name: str) -> None:
        compiler = getattr(gateway.jvm, "org.codehaus.janino.SimpleCompiler")()
        compiler.cook(files(_FOLDER).joinpath(f"{name}.java").read_text("utf-8"))
        (self._constructor,) = compiler.getClassLoader().loadClass(f"{_PACKAGE}.{name}").getConstructors()
        self._gateway = gateway

    def new(self, argument: object) -> JavaObject:
        """Return a new object.

        Args:
            argument: argument of the constructor.
        """
        arguments: Any = self._gateway.new_array(self._gateway.jvm.java.lang.Object, 1)
        arguments[0] = argument
        return self._constructor.newInstance(arguments)


def load_first_classes(gateway: JavaGateway) -> JavaObject:
    """Begin to load the classes of the first transform while Spark is still starting.

    Without a start-up cache, a start is mostly the loading of ten thousand classes, most of them one after the other.

    Returns:
        The thread of Java that does it.
    """
    return OwnClass(gateway, "FirstClasses").new("\n".join(first_classes()))


def first_classes() -> list[str]:
    """Return the full names of the classes, in the order in which they are needed.

    `benchmarks/first_classes.py` finds out which they are, and writes the file: a package and its classes a line.
    """
    lines = files(_FOLDER).joinpath(_NAMES).read_text("utf-8").splitlines()
    return [f"{package}.{name}" for package, *names in map(str.split, lines) for name in names]
