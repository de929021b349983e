"""Ingest of outside data into root datasets: sources and their permissions, lanes, watched folders, watermarks.

Reading and merging of files is in `odfpy.ingest`; this package does what is around it in a workspace.
"""
