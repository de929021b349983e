"""Datasets that the reference implementation made with its DataFusion engine, made again."""

from __future__ import annotations

from collections import Counter

import pytest
from support.engine.requests import recorded_transforms, success, table_of

from odfpy.data.slices.slice import read_slice
from odfpy.engine.datafusion.engine import DataFusionEngine

ENGINE = DataFusionEngine()


@pytest.mark.parametrize("dataset", ["big-trades", "large-cities"])
def test_every_transform_has_the_recorded_logical_hash(dataset, tmp_path):
    transforms = recorded_transforms(dataset, tmp_path)
    assert len(transforms) == 2
    for recorded in transforms:
        response = success(ENGINE.transform(recorded.request))
        assert str(response.slices[0].logical_hash) == recorded.logical_hash
        assert response.new_watermark == recorded.watermark
        assert table_of(response).schema.equals(read_slice(recorded.data_path).schema), "types and nullability too"


def test_union_all_has_the_recorded_rows_but_in_the_declared_order_of_inputs(tmp_path):
    for recorded in recorded_transforms("activity", tmp_path):
        response = success(ENGINE.transform(recorded.request))
        ours, theirs = table_of(response), read_slice(recorded.data_path)
        assert _rows(ours) == _rows(theirs)
        assert response.new_watermark == recorded.watermark
        kinds = ours.column("what").to_pylist()
        assert kinds == sorted(kinds, reverse=True), "trades come first"


def _rows(table):
    return Counter(tuple(row.items()) for row in table.drop_columns("offset").to_pylist())
