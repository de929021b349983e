"""The worker: a process that keeps Spark warm for a workspace. Its start, socket, sandbox, and client."""
