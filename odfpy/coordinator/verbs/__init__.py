"""The verbs of a workspace by subject; each module is an attribute of `Workspace`.

    datasets     list, show, add, rename, delete datasets
    branches     branches, tags, and staged changes
    sources      actions of sources on this machine, and their approval
    updates      pull, ingest, watch, follow; watermarks
    remotes      copies in other locations, and named repositories
    queries      rows, query results, exports, comparisons, and provenance of rows
    graph        the lineage of datasets
    maintenance  verify, clean up, compact, reset
    engines      status and control of the engines; analysis of queries

The modules share a `WorkspaceContext` and do not depend on `Workspace`. A verb with many options takes them as one
frozen request, created by the command line or by `Workspace`.
"""
