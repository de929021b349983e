"""The process that keeps Spark warm for a workspace: start, socket, sandbox, and the client that asks it."""
