"""`/platform/errors/{code}`: explanations of error codes."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field

from odfpy.codec.explain import Explanation, explanation
from odfpy.errors import UsageError
from odfpy.serving.http.errors import Refused
from odfpy.serving.rest.models import RefusalModel

router = APIRouter(prefix="/platform", tags=["server"])


class ExplanationModel(BaseModel):
    """The explanation of an error code, as in `odf help`; the text is Markdown."""

    title: Annotated[str, Field(examples=["a hash does not match"])]
    text: str


@router.get("/errors/{code}", responses={404: {"description": "No error has this code.", "model": RefusalModel}})
def explain(
    code: Annotated[str, Path(max_length=20, description="An error code.", examples=["E221"])],
) -> ExplanationModel:
    """Explain an error code, and what to try. No token is needed."""
    try:
        return explained(explanation(code))
    except UsageError as error:
        raise Refused(404, error.message) from error


def explained(explanation: Explanation) -> ExplanationModel:
    """Convert an explanation for a response.

    Args:
        explanation: the explanation.
    """
    return ExplanationModel(title=explanation.title, text=explanation.text)
