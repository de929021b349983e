"""The compiled part of the package; everything else about it is in pyproject.toml.

It is optional: where there is no C compiler, logical hashes are computed by numpy and Arrow, in more time (ADR 0052).
"""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "odfpy.data.slices._packing",
            ["odfpy/data/slices/_packing.c"],
            extra_compile_args=["-O3", "-Wall", "-Wextra"],
            optional=True,
        )
    ]
)
