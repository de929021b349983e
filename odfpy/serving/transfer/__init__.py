"""The transfer protocols, Simple and Smart, and odfpy's own extensions of them."""
