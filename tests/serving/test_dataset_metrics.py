"""Freshness for Prometheus: who sees which datasets, that its own parser reads it, and that it is quick."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from support.chains.workspaces import feed, root, workspace_with
from support.servers.serving import ask, serving

from odfpy.coordinator.storage.last_failure import remember
from odfpy.coordinator.workspace import Workspace
from odfpy.dataset.names import DatasetAlias
from odfpy.errors import OdfError
from odfpy.serving.callers.tokens import Scope, Tokens
from odfpy.serving.callers.visibility import Visibility, set_visibility
from odfpy.serving.rest.catalog import entry_of
from odfpy.serving.rest.dataset_metrics import text_of
from odfpy.serving.server import DatasetServer

Samples = dict[tuple[str, str], float]
"""Values by metric and dataset."""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    names = ("com.fed", "com.empty", "com.public")
    found = workspace_with(tmp_path_factory.mktemp("metrics"), *(root(name, "{kind: Append}") for name in names))
    feed(found, "com.fed", "1 a", "2 b")
    assert all(report.ok for report in found.verify(["com.fed"]))
    remember(found.storage.get("com.empty"), OdfError("no route"))
    set_visibility(found.storage.get("com.public").folder, Visibility.PUBLIC)
    return found


@pytest.fixture(scope="module")
def server(workspace: Workspace) -> Iterator[DatasetServer]:
    with serving(workspace) as server:
        yield server


def samples(text: str) -> Samples:
    families = list(text_string_to_metric_families(text))
    assert all(family.type == "gauge" and family.documentation for family in families)
    return {(one.name, one.labels["dataset"]): one.value for family in families for one in family.samples}


def test_a_reader_sees_how_fresh_each_dataset_is(server: DatasetServer, workspace: Workspace) -> None:
    answer = ask(f"{server.url}/metrics/datasets", token=Tokens(workspace.odf).new("prometheus", Scope.READ))
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    found = samples(answer.body.decode())
    assert {name for _, name in found} == {"com.fed", "com.empty", "com.public"}
    fed, state = {metric: value for (metric, name), value in found.items() if name == "com.fed"}, None
    state = workspace.storage.get("com.fed").state
    assert state.last_data_time is not None
    assert state.watermark is not None
    assert fed["odf_dataset_rows"] == 2
    assert fed["odf_dataset_size_bytes"] == state.data_bytes
    assert fed["odf_dataset_last_data_timestamp_seconds"] == state.last_data_time.nanos / 1e9
    assert fed["odf_dataset_watermark_timestamp_seconds"] == state.watermark.nanos / 1e9
    assert (fed["odf_dataset_verified"], fed["odf_dataset_pull_failed"]) == (1, 0)
    assert fed["odf_dataset_verification_timestamp_seconds"] > fed["odf_dataset_last_data_timestamp_seconds"]
    assert {metric for metric, name in found if name == "com.empty"} == {
        "odf_dataset_rows",
        "odf_dataset_size_bytes",
        "odf_dataset_blocks",
        "odf_dataset_pull_failed",
    }
    assert found["odf_dataset_pull_failed", "com.empty"] == 1


def test_strangers_learn_nothing(server: DatasetServer) -> None:
    """Not even of public datasets: numbers of all of them are for those who run things."""
    for token, challenge in ((None, 'Bearer realm="odf"'), ("nonsense", 'Bearer realm="odf"')):
        answer = ask(f"{server.url}/metrics/datasets", token=token)
        assert (answer.status, answer.headers["www-authenticate"]) == (401, challenge)
        assert b"com." not in answer.body


def test_a_token_of_another_workspace_sees_its_own_and_what_is_public(workspace: Workspace, tmp_path: Path) -> None:
    other = workspace_with(tmp_path / "other", root("org.own", "{kind: Append}"))
    with serving(workspace, other) as both:
        answer = ask(f"{both.url}/metrics/datasets", token=Tokens(other.odf).new("reader", Scope.READ))
    assert {name for _, name in samples(answer.body.decode())} == {"org.own", "com.public"}


def test_names_are_escaped(workspace: Workspace) -> None:
    entry = entry_of(workspace.storage.get("com.fed"))
    assert entry is not None
    name = 'a"b\\c\nd{e="f"} 1'
    alias = DatasetAlias.parse("com.x")
    object.__setattr__(alias.name, "text", name)
    handle = replace(entry.dataset.handle, alias=alias)
    dataset = replace(entry.dataset, handle=handle)
    assert {name for _, name in samples(text_of([replace(entry, dataset=dataset)]))} == {name}
