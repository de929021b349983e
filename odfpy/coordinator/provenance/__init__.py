"""Rows traced to their origins: through the runs of derivatives, down to files of sources."""
