"""Commands for other places: repositories, transfers, the server and who may use it."""
