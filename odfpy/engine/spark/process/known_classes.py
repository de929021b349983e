"""A cache of Java classes.

py4j queries Java again for each use of a class or static method, which searches all of Spark's jars for every package
that might contain the class; PySpark uses one for each function that it calls.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaClass, JavaMember, JVMView


class KnownClasses(JVMView):  # type: ignore[misc]
    """PySpark's view of Java, which caches classes by the requested name."""

    def __getattr__(self, name: str) -> Any:
        member = super().__getattr__(name)
        if type(member) is JavaClass:
            member = self.__dict__[name] = KnownClass(member._fqn, member._gateway_client)  # noqa: SLF001
        return member


_SINGLETON = "MODULE$"
_CONSTANTS = "org.apache.spark.sql.types.DataTypes"


class KnownClass(JavaClass):  # type: ignore[misc]
    """A class; a static method that was found stays known, and so does a constant of Spark.

    Values of other static fields are not cached.
    """

    def __getattr__(self, name: str) -> Any:
        member = super().__getattr__(name)
        if type(member) is JavaMember or name == _SINGLETON or self._fqn == _CONSTANTS:
            self.__dict__[name] = member
        return member


def know_classes(jvm: JVMView) -> None:
    """Make PySpark's shared view of Java cache classes."""
    jvm.__class__ = KnownClasses
