"""Evidence: answers of a web stored as datasets, so that anyone can verify them later without the relays."""
