"""The verbs of a workspace by subject: each module is an attribute of `Workspace`, and a new verb goes into one.

    datasets     which there are: list, look, add, rename, delete; the dataset registry
    branches     branches and tags, and what is staged on them
    sources      actions of sources on this machine, and their approval
    updates      data in: pull, ingest, watch, follow, watermarks
    remotes      data out to other places, and the repositories by name
    queries      rows, answers, exports, comparisons, and where a row comes from
    graph        who is derived from whom
    maintenance  verify, clean up, compact, reset
    engines      what runs queries; analysis, status, end

The modules share a `WorkspaceContext` and know nothing of `Workspace`. A verb with many options takes them as one
frozen request, which the command line or `Workspace` makes.
"""
