"""Rows followed to what they are made of: through the runs of derivatives, down to files of sources."""
