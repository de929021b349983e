"""Data slices: reading, writing, statistics and checks of the Parquet files of a dataset."""
