"""Shares as a file declares them: whatever was there before, the steps lead to what is declared, and then there are none."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from odfpy.errors import InvalidValue, MalformedManifest
from odfpy.sharing import declared
from odfpy.sharing.declared import DeclaredTable, load_declared, steps
from odfpy.sharing.errors import InvalidCondition, SharedObjectNotFound
from odfpy.sharing.model import SourceKind, TableSource
from odfpy.sharing.sharing import Sharing

NAMES = ["Ann", "bob", "eve"]
TABLES = ["eu.orders", "eu.log", "us.orders"]
TREES = st.fixed_dictionaries(
    {
        "shares": st.dictionaries(
            st.sampled_from(["sales", "fx"]),
            st.none()
            | st.fixed_dictionaries(
                {
                    "tables": st.dictionaries(
                        st.sampled_from(TABLES),
                        st.fixed_dictionaries(
                            {"dataset": st.sampled_from(["a", "b"])},
                            optional={"shown": st.sampled_from(["current", "changelog"])},
                        ),
                    )
                },
                optional={"comment": st.sampled_from(["", "rates of banks"])},
            ),
        ),
        "recipients": st.dictionaries(
            st.sampled_from(NAMES),
            st.none()
            | st.fixed_dictionaries({"attributes": st.dictionaries(st.just("country"), st.sampled_from(["DE", "FR"]))}),
        ),
    }
).flatmap(
    lambda tree: st.fixed_dictionaries(
        {
            "groups": st.dictionaries(
                st.sampled_from(["partners", "all"]),
                st.lists(st.sampled_from(sorted(tree["recipients"]) or ["x"]), unique=True)
                if tree["recipients"]
                else st.just([]),
            ),
            "grants": st.lists(
                st.fixed_dictionaries(
                    {
                        "to": st.sampled_from(sorted(tree["recipients"])),
                        "path": st.sampled_from(sorted(tree["shares"])),
                    },
                    optional={
                        "columns": st.lists(st.sampled_from(["x", "y"]), min_size=1, max_size=3),
                        "rows": st.just("x = 1"),
                    },
                ),
                max_size=3,
            )
            if tree["recipients"] and tree["shares"]
            else st.just([]),
        }
    ).map(lambda more: {"kind": "Shares", "version": 1, **tree, **more})
)


def resolve(table: DeclaredTable) -> TableSource:
    kind, place = table.source
    return TableSource(kind, f"did:{place}", table.shown, table.at)


def applied(sharing: Sharing, tree: dict[str, Any], *, prune: bool) -> list[str]:
    wanted = load_declared(json.dumps(tree).encode(), "shares.yaml")
    found = steps(sharing, wanted, resolve, prune=prune)
    for step in found:
        step.take()
    return [f"{step.sign} {step.text}" for step in found]


def seen(sharing: Sharing) -> dict[str, Any]:
    return {
        "tables": sorted((str(one.path), one.source) for one in sharing.shares.tables()),
        "shares": sorted((one.name, one.comment) for one in sharing.shares.shares()),
        "people": sorted(
            (one.name, one.kind.value, tuple(sorted(one.attributes.items()))) for one in sharing.principals.all()
        ),
        "grants": sorted(
            (one.principal, str(one.path), one.columns or (), one.rows or "") for one in sharing.grants.all()
        ),
    }


@settings(max_examples=examples(5, 10))
@given(trees=st.lists(TREES, min_size=1, max_size=3))
def test_the_last_file_holds_whatever_was_there(trees: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        changed, fresh = (Sharing.of_workspace(Path(folder), None) for folder in (one, other))
        for tree in trees:
            applied(changed, tree, prune=True)
        applied(fresh, trees[-1], prune=False)
        assert {k: str(v).lower() for k, v in seen(changed).items()} == {
            k: str(v).lower() for k, v in seen(fresh).items()
        }
        assert applied(changed, trees[-1], prune=True) == []
        assert applied(fresh, trees[-1], prune=False) == []


def test_members_come_and_go_in_order(tmp_path: Path) -> None:
    sharing = Sharing.of_workspace(tmp_path, None)
    people = [f"p{number}" for number in range(20)]
    tree = {"kind": "Shares", "version": 1, "recipients": dict.fromkeys(people), "groups": {"all": people[::-1]}}
    joined = [line for line in applied(sharing, tree, prune=False) if " in all" in line]
    assert joined == sorted(joined)
    left = applied(sharing, tree | {"groups": {"all": []}}, prune=False)
    assert left == sorted(left)


def test_the_comment_of_a_share_follows(tmp_path: Path) -> None:
    sharing = Sharing.of_workspace(tmp_path, None)
    tree = {"kind": "Shares", "version": 1, "shares": {"fx": {"comment": "old"}}}
    applied(sharing, tree, prune=False)
    assert applied(sharing, tree | {"shares": {"FX": {"comment": "new"}}}, prune=False) == ["~ share FX: its comment"]
    assert [one.comment for one in sharing.shares.shares()] == ["new"]


def test_the_example_in_the_docstring_is_one(tmp_path: Path) -> None:
    example = (declared.__doc__ or "").partition("\n\n")[2]
    found = steps(Sharing.of_workspace(tmp_path, None), load_declared(example.encode(), "here"), resolve, prune=True)
    assert [step.text for step in found][-1] == "grant: partners reads sales.eu, rows country = recipient('country')"


def test_what_is_not_declared_stays_without_prune(tmp_path: Path) -> None:
    sharing = Sharing.of_workspace(tmp_path, None)
    applied(sharing, {"kind": "Shares", "version": 1, "shares": {"fx": None}, "recipients": {"ann": None}}, prune=False)
    other = {"kind": "Shares", "version": 1, "shares": {"sales": {"tables": {"eu.a": {"dataset": "a"}}}}}
    assert applied(sharing, other, prune=False) == ["+ share sales", "+ table sales.eu.a: current of a"]
    assert applied(sharing, other, prune=True) == ["- share fx", "- recipient ann"]
    table = sharing.shares.tables()[0]
    other["shares"]["sales"]["tables"]["eu.a"] = {"dataset": "a", "shown": "changelog", "at": "v1"}  # type: ignore[index]
    assert applied(sharing, other, prune=True) == ["~ table sales.eu.a: changelog of a at v1"]
    assert sharing.shares.tables()[0].id == table.id


@pytest.mark.parametrize(
    ("more", "error", "message"),
    [
        ({"share": {}}, MalformedManifest, "share: Extra inputs"),
        ({"version": 2}, MalformedManifest, "version"),
        ({"kind": "x"}, MalformedManifest, "kind"),
        ({"shares": {"a": {"tables": {"x": {"dataset": "a"}}}}}, InvalidValue, "not a table|Not a"),
        ({"shares": {"a": {"tables": {"x.y": {}}}}}, MalformedManifest, r"shares\.a\.tables\.x\.y: .*not none"),
        (
            {"shares": {"a": {"tables": {"x.y": {"dataset": "a", "delta": "b"}}}}},
            MalformedManifest,
            "dataset and delta",
        ),
        ({"shares": {"a": {"tables": {"x.y": {"parquet": "a", "at": "v1"}}}}}, MalformedManifest, "are for datasets"),
        ({"grants": [{"to": "a", "path": "b", "rows": "now() = 1"}]}, InvalidCondition, "NOW"),
        ({"grants": [{"to": "a", "path": "b", "columns": []}]}, MalformedManifest, "grants.0.columns"),
        ({"grants": [{"to": "nobody", "path": "b"}]}, SharedObjectNotFound, "nobody"),
    ],
)
def test_files_that_make_no_sense(tmp_path: Path, more: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        applied(Sharing.of_workspace(tmp_path, None), {"kind": "Shares", "version": 1, **more}, prune=False)


def test_tables_of_all_kinds(tmp_path: Path) -> None:
    sharing = Sharing.of_workspace(tmp_path, None)
    kinds = {kind.value: f"/srv/{kind.value}" for kind in SourceKind}
    tables = {f"eu.{kind}": {kind: place} for kind, place in kinds.items()}
    tree = {"kind": "Shares", "version": 1, "shares": {"sales": {"tables": tables}}}
    assert applied(sharing, tree, prune=True)[1:] == [
        "+ table sales.eu.dataset: current of /srv/dataset",
        "+ table sales.eu.parquet: parquet /srv/parquet",
        "+ table sales.eu.delta: delta /srv/delta",
        "+ table sales.eu.iceberg: iceberg /srv/iceberg",
    ]
    assert applied(sharing, tree, prune=True) == []
