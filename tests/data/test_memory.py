"""Arrays of numpy as Arrow has them."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from odfpy.data.memory import from_numpy

TYPES = [np.int8, np.int32, np.int64, np.uint64, np.float32, np.float64, np.bool_]


@given(st.sampled_from(TYPES).flatmap(lambda dtype: npst.arrays(dtype, st.integers(0, 40))), st.integers(1, 3))
def test_an_array_is_the_same_in_arrow(values: np.ndarray, step: int):
    found = from_numpy(values[::step])
    found.validate(full=True)
    assert found.null_count == 0
    assert found.type == pa.from_numpy_dtype(values.dtype)
    assert np.array_equal(found.to_numpy(zero_copy_only=False), values[::step], equal_nan=values.dtype.kind == "f")


@pytest.mark.parametrize("values", ["np.arange(3)", "np.ones(3, np.bool_)"])
def test_masked_arrays_are_not_loaded_for_it(values: str):
    code = f"import sys, numpy as np; from odfpy.data.memory import from_numpy; from_numpy({values})"
    subprocess.run([sys.executable, "-c", f"{code}; assert 'numpy.ma' not in sys.modules"], check=True)
