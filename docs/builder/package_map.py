"""Draw `docs/images/packages.svg`: which package may import which, from `PACKAGES` in tests/test_architecture.py."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PICTURE = REPOSITORY / "docs" / "images" / "packages.svg"

_CELL = 22
_LEFT = 120
_TOP = 110

_HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-labelledby="name what">
  <title id="name">Which package of odfpy may import which</title>
  <desc id="what">A square in a row and a column: the package of the row may import that of the column.</desc>
  <style>
    text {{ font: 13px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; fill: #22303b }}
    .row {{ text-anchor: end }}
    .own {{ fill: #b8c6d1 }}
    .may {{ fill: #2f6d94 }}
    .grid {{ stroke: #dde5ea; fill: none }}
    @media (prefers-color-scheme: dark) {{
      text {{ fill: #e4eaef }}
      .own {{ fill: #3d4d5a }}
      .may {{ fill: #67a9d3 }}
      .grid {{ stroke: #2a3640 }}
    }}
  </style>
"""


def packages() -> dict[str, set[str]]:
    """The map of the architecture test, which also checks that the code follows it."""
    tree = ast.parse((REPOSITORY / "tests" / "test_architecture.py").read_text(encoding="utf-8"))
    names: dict[str, object] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name == "PACKAGES" or (name.isupper() and isinstance(node.value, ast.Set)):
                names[name] = eval(compile(ast.Expression(node.value), "map", "eval"), {"set": set}, names)
    found = names["PACKAGES"]
    assert isinstance(found, dict)
    return found


def drawing(allowed: Mapping[str, set[str]]) -> str:
    """A square for each import that is allowed; all are left of the diagonal, since imports go one way."""
    order = _from_the_bottom(allowed)
    size = _CELL * len(order)
    parts = [_HEAD.format(width=_LEFT + size + 60, height=_TOP + size + 10)]
    for number, name in enumerate(order):
        middle = number * _CELL + _CELL // 2
        x, y = _LEFT + middle, _TOP + middle
        parts += [
            f'  <path class="grid" d="M{_LEFT} {y} H{_LEFT + size} M{x} {_TOP} V{_TOP + size}"/>\n',
            f'  <text class="row" x="{_LEFT - 8}" y="{y + 4}">{name}</text>\n',
            f'  <text transform="translate({x + 4} {_TOP - 8}) rotate(-50)">{name}</text>\n',
        ]
    for row, name in enumerate(order):
        for column, other in enumerate(order):
            if other == name or other in allowed[name]:
                kind = "own" if other == name else "may"
                x, y = (edge + place * _CELL + 4 for edge, place in ((_LEFT, column), (_TOP, row)))
                parts.append(f'  <rect class="{kind}" x="{x}" y="{y}" width="14" height="14" rx="2"/>\n')
    return "".join([*parts, "</svg>\n"])


def _from_the_bottom(allowed: Mapping[str, set[str]]) -> list[str]:
    """What imports nothing first; among equals, in the order of the map."""
    order: list[str] = []
    while len(order) < len(allowed):
        order.append(next(name for name in allowed if name not in order and allowed[name] <= set(order)))
    return order


if __name__ == "__main__":
    PICTURE.write_text(drawing(packages()), encoding="utf-8")
