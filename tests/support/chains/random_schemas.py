"""Random dataset schemas."""

from __future__ import annotations

from hypothesis import strategies as st

from odfpy.data.attributes import ExtraAttributes
from odfpy.data.schemas import schema as odf
from odfpy.data.schemas.schema import DataField, DataSchema, DataType, TimeUnit

NAMES = st.text("abcXYZ_0 é", min_size=1, max_size=5)
UNITS = st.one_of(st.none(), st.sampled_from(TimeUnit))
EXTRAS = st.one_of(
    st.none(), st.dictionaries(st.sampled_from(["a.org/x", "b.org/y"]), st.integers(0, 3)).map(ExtraAttributes.of)
)


def leaf_types() -> st.SearchStrategy[DataType]:
    simple = [
        odf.Bool(), odf.Date(), odf.Float16(), odf.Float32(), odf.Float64(), odf.Int8(), odf.Int16(), odf.Int32(),
        odf.Int64(), odf.UInt8(), odf.UInt16(), odf.UInt32(), odf.UInt64(), odf.String(),
    ]  # fmt: skip
    return st.one_of(
        st.sampled_from(simple),
        st.builds(odf.Binary, st.one_of(st.none(), st.integers(1, 40))),
        st.integers(1, 76).flatmap(
            lambda precision: st.builds(odf.Decimal, st.just(precision), st.integers(0, precision))
        ),
        st.builds(odf.Duration, UNITS),
        st.builds(odf.Time, UNITS),
        st.builds(odf.Timestamp, UNITS, st.sampled_from([None, "UTC", "Europe/Berlin"])),
    )


def optional(types: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
    return st.one_of(types, types.map(odf.Option))


def fields(types: st.SearchStrategy[DataType], *, least: int = 1) -> st.SearchStrategy[tuple[DataField, ...]]:
    made = st.builds(DataField, NAMES, optional(types), EXTRAS)
    return st.lists(made, min_size=least, max_size=4, unique_by=lambda field: field.name).map(tuple)


def data_types() -> st.SearchStrategy[DataType]:
    def nested(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
        return st.one_of(
            st.builds(odf.List, optional(inner), st.one_of(st.none(), st.integers(1, 5))),
            st.builds(odf.Map, inner, optional(inner), st.booleans()),
            fields(inner).map(odf.Struct),
        )

    return st.recursive(leaf_types(), nested, max_leaves=5)


def schemas() -> st.SearchStrategy[DataSchema]:
    return st.builds(DataSchema, fields(data_types(), least=0), EXTRAS)
