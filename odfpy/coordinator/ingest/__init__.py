"""Outside data on its way into root datasets: sources and what they may do, lanes, watched folders, watermarks.

How a file is read and merged is the business of `odfpy.ingest`; this is what happens around it in a workspace.
"""
