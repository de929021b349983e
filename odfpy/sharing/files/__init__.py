"""The files that go out: those of a table as they are, or made for what somebody may see of them."""
