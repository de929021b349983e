"""Events of Ethereum contracts. Fetching asks nodes for them, engines have functions over them."""
