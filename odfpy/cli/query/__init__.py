"""Commands that ask for data: `odf tail`, `odf sql` and its shell, exports, proofs, provenance."""
