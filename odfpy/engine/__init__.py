"""Engines: they run queries over rows, and know nothing of chains. The contract is that of the specification.

    contract, jobs   requests and responses
    registry         the engines of a workspace by name; the coordinator and the query service call it
    worker           a process per workspace that keeps Spark warm, and confines it; `worker.client` is the engine
    spark            what runs in that process: analysis, incremental and row by row execution, provenance
    datafusion       the other engine: row by row transforms and ad hoc queries, each in a process of its own
    sql              queries as text, before an engine has them
    checkpoint       the rows that an engine keeps between pulls, in one file that the chain records
    arrangement      rows by key for the next pull, in the cache of the workspace; it may always be lost
    lateness         late rows, and policies for them

An engine gets paths of files, and writes files; the coordinator commits them (`odfpy.coordinator.transform`).
"""
