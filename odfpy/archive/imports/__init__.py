"""Imports of files into an archive: of a bucket in datalake's layout, or of a tree of folders."""
