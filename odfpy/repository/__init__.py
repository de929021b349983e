"""Places where participants exchange datasets, and how datasets move between them."""
