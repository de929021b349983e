"""Evidence: answers of a web that are kept as datasets, so that anybody can verify them later, without the relays."""
