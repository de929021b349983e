"""Java is asked for a class, or for a static method of one, the first time only."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JError

pytestmark = pytest.mark.spark


@pytest.fixture
def asked(spark, monkeypatch):
    """The questions that Java is asked; that Python needs an object no longer (`m`, `d`) may be said at any time."""
    client, questions = spark._jvm._gateway_client, []
    send = client.send_command

    def ask(command, *arguments, **options):
        if not command.startswith("m\nd\n"):
            questions.append(command)
        return send(command, *arguments, **options)

    monkeypatch.setattr(client, "send_command", ask)
    return questions


@pytest.mark.parametrize("name", ["functions", "org.apache.spark.sql.functions"])
def test_a_function_is_looked_up_once(spark, asked, name):
    first = getattr(spark._jvm, name).lit
    asked.clear()
    assert getattr(spark._jvm, name).lit is first
    assert asked == []
    assert first(5).toString() == "5"


def test_what_a_static_field_is_worth_is_asked_each_time(spark, asked):
    integers = getattr(spark._jvm, "java.lang.Integer")
    for _ in range(2):
        asked.clear()
        assert integers.MAX_VALUE == 2**31 - 1
        assert len(asked) == 1


def test_packages_are_walked_as_before_and_what_is_not_there_is_an_error(spark):
    assert spark._jvm.java.lang.Integer.parseInt("7") == 7
    with pytest.raises(Py4JError):
        getattr(spark._jvm, "java.lang.Integer").nope  # noqa: B018
