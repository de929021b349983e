"""What Ethereum contracts say: their events. Fetching asks nodes for them, engines have functions over them."""
