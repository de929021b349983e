"""Commands for remotes: repositories, transfers, the server and its access tokens."""
