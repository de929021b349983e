"""Prompts that users select in their client. Their text is fixed; the user's arguments are inserted unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mcp.types import GetPromptResult, Prompt, PromptArgument, PromptMessage, TextContent

PROMPTS: Final = [
    Prompt(
        name="check_number",
        title="Check this number",
        description="Find out whether a number is right, and prove it.",
        arguments=[
            PromptArgument(name="claim", description="The number, and its claimed meaning.", required=True),
            PromptArgument(name="proof", description="The hash of its proof, or the proof, if there is one."),
        ],
    ),
    Prompt(
        name="what_changed",
        title="What has changed?",
        description="Summarize the changes of a dataset since a date.",
        arguments=[
            PromptArgument(name="name", description="Name of the dataset.", required=True),
            PromptArgument(name="since", description="A date, such as 2024-03-01.", required=True),
        ],
    ),
]

_TEXTS: Final = {
    "check_number": (
        "Check this claim: {claim}\n{proof}"
        "If there is a proof, check it with check_proof, and tell me what its query really asks. In any case find"
        " the dataset yourself, read its description, and answer the question with a query of your own, with a proof."
        " Tell me: is the claim right, how old is the data, which blocks did you read, and the command by which I check"
        " your answer without you."
    ),
    "what_changed": (
        "What has changed in the dataset {name} since {since}? Use dataset_history for the blocks, then compare_states"
        " from the block before to the head. Count before you list: tell me how many rows were added, removed and"
        " changed, and show the most important ones. Say so if you have not seen all of them."
    ),
}


def render_prompt(name: str, arguments: Mapping[str, str]) -> GetPromptResult:
    """Return a prompt, ready to be sent.

    Args:
        name: name of the prompt.
        arguments: user input.

    Raises:
        KeyError: the prompt is unknown, or an argument is missing.
    """
    prompt = next((one for one in PROMPTS if one.name == name), None)
    if prompt is None:
        raise KeyError(name)
    values = {"proof": f"Its proof: {arguments['proof']}\n" if arguments.get("proof") else ""}
    values |= {argument.name: arguments[argument.name] for argument in prompt.arguments or [] if argument.required}
    text = _TEXTS[name].format(**values)
    message = PromptMessage(role="user", content=TextContent(type="text", text=text))
    return GetPromptResult(description=prompt.description, messages=[message])
