"""Remote repositories, where participants exchange datasets, and the transfer of datasets to and from them."""
