"""What servers are told: a request as the bytes of a command."""
