"""Checks of the schemas and options of JSON, CSV and XML functions, which Spark evaluates during analysis.

So both have to be literals in the query, and only options about the format of a text are allowed: others name files,
addresses and Java classes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from odfpy.engine.spark.plan.arguments import UnsuitableArgument
from odfpy.engine.spark.plan.catalyst import Node, items, parsed_name
from odfpy.engine.spark.plan.functions import READS_FILES

_IN_ALL: Final = """
    charset columnNameOfCorruptRecord dateFormat enableDateTimeParsingFallback encoding locale mode multiLine
    samplingRatio singleVariantColumn timeFormat timeZone timestampFormat timestampNTZFormat"""
_JSON: Final = """
    allowBackslashEscapingAnyCharacter allowComments allowNonNumericNumbers allowNumericLeadingZeros
    allowSingleQuotes allowUnquotedControlChars allowUnquotedFieldNames dropFieldIfAllNull explodeEmbeddedArray
    ignoreNullFields inferTimestamp lineSep prefersDecimal pretty primitivesAsString sortKeys
    writeNonAsciiCharacterAsCodePoint"""
_CSV: Final = """
    charToEscapeQuoteEscaping columnPruning comment delimiter emptyValue enforceSchema escape escapeQuotes header
    ignoreLeadingWhiteSpace ignoreTrailingWhiteSpace inferSchema lineSep maxCharsPerColumn maxColumns nanValue
    negativeInf nullValue positiveInf preferDate quote quoteAll sep unescapedQuoteHandling"""
_XML: Final = """
    arrayElementName attributePrefix declaration excludeAttribute ignoreNamespace ignoreSurroundingSpaces indent
    inferSchema nullValue preferDate prefersDecimal rootTag rowTag validateName valueTag wildcardColName"""
_XSD: Final = "rowvalidationxsdpath"
_MADE_UP_TYPE: Final = "udt"
_HINT: Final = "Write it in quotes, for example 'id BIGINT, name STRING'."


def _name_of(*texts: str) -> frozenset[str]:
    return frozenset(" ".join(texts).lower().split())


@dataclass(frozen=True, slots=True)
class _Signature:
    """The arguments of a function besides the text: positions of its schema and options, and allowed options."""

    schema: int | None
    options: int | None = None
    known: frozenset[str] = frozenset()


OPTIONS: Final = {"json": _name_of(_IN_ALL, _JSON), "csv": _name_of(_IN_ALL, _CSV), "xml": _name_of(_IN_ALL, _XML)}
_FORMS: Final[dict[str, _Signature]] = {
    **{f"from_{name}": _Signature(1, 2, known) for name, known in OPTIONS.items()},
    **{f"to_{name}": _Signature(None, 1, known) for name, known in OPTIONS.items()},
    **{f"schema_of_{name}": _Signature(0, 1, known) for name, known in OPTIONS.items()},
    "variant_get": _Signature(2),
    "try_variant_get": _Signature(2),
}
_MAKE_SCHEMAS: Final = frozenset(f"schema_of_{name}" for name in OPTIONS)


def unfit_options(function: str, arguments: list[Node]) -> UnsuitableArgument | None:
    """Return why a parsed call may not be analyzed, or None when it may.

    Args:
        function: its name in lower case.
        arguments: its arguments.
    """
    form = _FORMS.get(function)
    if form is None:
        return None
    if any(parsed_name(argument).startswith("analysis.UnresolvedStar") for argument in arguments):
        return UnsuitableArgument("takes columns by their names, not as *", "Name them one by one.")
    schema, options = (_at(arguments, position) for position in (form.schema, form.options))
    if schema is not None and not _is_schema(schema, is_sample=function in _MAKE_SCHEMAS):
        return UnsuitableArgument("takes its schema as a constant", _HINT)
    return None if options is None else _unfit_map(options, form.known)


def _at(arguments: list[Node], position: int | None) -> Node | None:
    return arguments[position] if position is not None and position < len(arguments) else None


def _is_schema(node: Node, *, is_sample: bool) -> bool:
    """Return whether a schema, or the sample that it is inferred from, is a literal in the query."""
    if parsed_name(node) == "Literal":
        return is_sample or not _names_classes(str(node.value()))
    return not is_sample and call_name(node) in _MAKE_SCHEMAS


def _names_classes(schema: str) -> bool:
    """Return whether a JSON schema has user-defined types, whose Java classes would be loaded."""
    if "{" not in schema:
        return False
    values: list[Any] = []

    def keep(pairs: list[tuple[str, Any]]) -> None:
        values.extend(value for _, value in pairs)

    try:
        json.loads(schema, object_pairs_hook=keep)
    except (ValueError, RecursionError):
        return True  # Java may parse it differently
    return _MADE_UP_TYPE in values


def _unfit_map(options: Node, known: Iterable[str]) -> UnsuitableArgument | None:
    parts = items(options.arguments()) if call_name(options) == "map" else [options]
    if any(parsed_name(part) != "Literal" for part in parts):
        return UnsuitableArgument("takes its options as constants", "Write map('name', 'value', ...).")
    for key in map(str, (part.value() for part in parts[::2])):
        if key.lower() == _XSD:
            return UnsuitableArgument(READS_FILES, "Omit the option rowValidationXSDPath.")
        if key.lower() not in known:
            return UnsuitableArgument(f"has no option `{key}` in queries", f"There are: {', '.join(sorted(known))}.")
    return None


def call_name(node: Node) -> str | None:
    """Return the name of the function that a parsed expression calls, in lower case; None if it is not built in."""
    match parsed_name(node):
        case "analysis.UnresolvedFunction":
            return function_name(items(node.nameParts()))
        case "analysis.UnresolvedGenerator":
            return function_name(items(node.name().nameParts()))
    return None


def function_name(parts: list[str]) -> str | None:
    """Return the name of a function in lower case, without `system.builtin`; None when it has another path."""
    *path, name = (str(part) for part in parts)
    in_builtin = [part.lower() for part in path] in ([], ["builtin"], ["system", "builtin"])
    return name.lower() if in_builtin and name.isascii() else None
