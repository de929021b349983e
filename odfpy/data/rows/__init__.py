"""Rows outside of slices: plain values, text, and exported files."""
