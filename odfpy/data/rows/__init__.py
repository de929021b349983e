"""Rows outside of slices: plain values, text, and files of rows for others."""
