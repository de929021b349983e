"""Classes that a first transform needs are loaded while Spark starts, and nothing of them runs before its time."""

from __future__ import annotations

from typing import Any
from zipfile import ZipFile

import pytest
from py4j.protocol import Py4JJavaError

from odfpy.engine.spark.process.jvm import class_path, spark_home
from odfpy.engine.spark.process.own_classes import OwnClass, first_classes, load_first_classes

FAILS_WHEN_INITIALIZED = "org.apache.hadoop.security.JniBasedUnixGroupsMapping"
"""Its static code fails where a native library of Hadoop is missing; of a second attempt, Java tells another error."""


def loaded(spark: Any, name: str) -> Any:
    """The class if Java has it already, or None."""
    lang = spark._jvm.java.lang
    arguments = spark.sparkContext._gateway.new_array(lang.Class, 1)
    arguments[0] = lang.Class.forName("java.lang.String")
    method = lang.Class.forName("java.lang.ClassLoader").getDeclaredMethod("findLoadedClass", arguments)
    method.setAccessible(True)
    values = spark.sparkContext._gateway.new_array(lang.Object, 1)
    values[0] = name
    return method.invoke(lang.ClassLoader.getSystemClassLoader(), values)


def test_installed_spark_has_all_of_them() -> None:
    """Otherwise another version has come, and `benchmarks/first_classes.py` finds out what it needs."""
    there = {name for jar in class_path(spark_home()) for name in ZipFile(jar).namelist()}
    names = first_classes()
    assert [name for name in names if f"{name.replace('.', '/')}.class" not in there] == []
    assert len(names) == len(set(names)) > 3_000


def test_start_does_not_look_for_the_types_of_machine_learning() -> None:
    """They cost a start a second; that Spark finds them is the work of a service in their jar."""
    service = "META-INF/services/org.apache.spark.sql.SparkSessionExtensionsProvider"
    assert [jar.name for jar in class_path(spark_home()) if service in ZipFile(jar).namelist()] == []


def test_classes_are_loaded_and_not_initialized(spark: Any) -> None:
    assert loaded(spark, FAILS_WHEN_INITIALIZED) is None
    names = ["no.such.Thing", "java.lang", "", FAILS_WHEN_INITIALIZED]
    OwnClass(spark.sparkContext._gateway, "FirstClasses").new("\n".join(names)).join()
    assert loaded(spark, FAILS_WHEN_INITIALIZED) is not None
    with pytest.raises(Py4JJavaError) as failed:
        spark._jvm.java.lang.Class.forName(FAILS_WHEN_INITIALIZED)
    assert failed.value.java_exception.getClass().getName() == "java.lang.ExceptionInInitializerError"


def test_all_of_a_first_transform_are_loaded(spark: Any) -> None:
    load_first_classes(spark.sparkContext._gateway).join()
    missing = [name for name in first_classes() if loaded(spark, name) is None]
    assert missing == []
