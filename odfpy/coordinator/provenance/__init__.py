"""Tracing of rows to their origins: through the runs of derivatives, to files of sources."""
