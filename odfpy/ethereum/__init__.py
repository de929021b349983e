"""Events of Ethereum contracts: fetch steps request them from nodes, and engines have functions to decode them."""
