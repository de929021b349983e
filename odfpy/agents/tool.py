"""Tools: functions that a model may call, independent of the protocol."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from odfpy.agents.limits import MAX_NAME_LENGTH
from odfpy.agents.readers import Reader
from odfpy.engine.cancellation import CancellationToken


class Arguments(BaseModel):
    """Arguments of a tool; an unknown one is a mistake, which the model should hear of."""

    model_config = ConfigDict(extra="forbid")


class ToolAnswer(BaseModel):
    """An answer of a tool."""

    def summary(self) -> str:
        """Summarize the answer as text with numbers, but without content of datasets."""
        raise NotImplementedError


DatasetName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_NAME_LENGTH,
        description="Name or id of a dataset, from find_datasets.",
        examples=["com.example.rates"],
    ),
]

A = TypeVar("A", bound=Arguments)


@dataclass(frozen=True, slots=True)
class Tool(Generic[A]):
    """A tool that a model may call.

    Attributes:
        name: name of the tool.
        title: name of the tool for people.
        description: description for the model, which must not contain content of datasets.
        arguments: class of the arguments.
        answer: class of the answer.
        run: runs the tool in a thread; raises an `OdfError` on failure.
        writes: whether it changes data, which requires a token with the scope.
        is_query: whether it is a query; number and duration of concurrent queries are limited.
        needs_token: whether it needs a token, since anonymous callers could exhaust the memory.
    """

    name: str
    title: str
    description: str
    arguments: type[A]
    answer: type[ToolAnswer]
    run: Callable[[Reader, A, CancellationToken], ToolAnswer]
    writes: bool = False
    is_query: bool = True
    needs_token: bool = False

    def call(self, reader: Reader, arguments: dict[str, Any], control: CancellationToken) -> ToolAnswer:
        """Run the tool for a call.

        Args:
            reader: reader of the caller.
            arguments: unvalidated arguments.
            control: cancellation by another thread.

        Raises:
            ValidationError: the arguments are invalid.
            OdfError: the call fails.
        """
        return self.run(reader, self.arguments.model_validate(arguments), control)
