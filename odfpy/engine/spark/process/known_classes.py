"""A cache of Java classes.

py4j asks Java again for each class and each static method that is named, which searches all of Spark's jars for every
package that the class might be in; PySpark names one for each function that it calls.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaClass, JavaMember, JVMView


class KnownClasses(JVMView):  # type: ignore[misc]
    """Java as PySpark sees it; a class that was found stays known by the name that it was asked for by."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if type(found) is JavaClass:
            found = self.__dict__[name] = KnownClass(found._fqn, found._gateway_client)  # noqa: SLF001
        return found


_SINGLETON = "MODULE$"
_CONSTANTS = "org.apache.spark.sql.types.DataTypes"


class KnownClass(JavaClass):  # type: ignore[misc]
    """A class; a static method that was found stays known, and so does a constant of Spark.

    What other static fields are worth is asked each time.
    """

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if type(found) is JavaMember or name == _SINGLETON or self._fqn == _CONSTANTS:
            self.__dict__[name] = found
        return found


def know_classes(jvm: JVMView) -> None:
    """Let PySpark's view of Java, which it hands to all of its parts, remember classes."""
    jvm.__class__ = KnownClasses
