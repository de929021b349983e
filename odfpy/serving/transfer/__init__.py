"""The transfer protocols, Simple and Smart, and what nodes of ours take beside them."""
