"""Ingestion of external data into root datasets: sources and their permissions, lanes, watched folders, watermarks.

Reading and merging of files is in `odfpy.ingest`; this package integrates it into a workspace.
"""
