"""Queries row by row: every row of the result comes from one row of an input, and operation types pass through.

All other queries go through `odfpy.engine.spark.incremental`.
"""
