"""Data slices: reading, writing, measuring and checking the Parquet files of a dataset."""
