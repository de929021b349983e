"""Commands that query data: `odf tail`, `odf sql` and its shell, exports, proofs, provenance."""
