"""The Spark engine, as it runs in the sandboxed child of the worker (`odfpy.engine.worker`).

    process      Spark as a process: Java, sessions, settings
    plan         logical plans of Spark, read and built from Python
    analysis     admission of a query, and its analysis; what is not deterministic is refused
    execution    the operations of the contract; `operations` is where a request begins
    row_by_row   queries without state
    incremental  all other queries: fragments, stateful inputs, changelogs, checkpoints, arrangements
    batch        a second opinion that runs a query once; it shares no code with `incremental`
    provenance   from rows of a result to rows of inputs
    rows         rows in and out of Spark

A pull of a derivative goes through `execution.operations`, `execution.prepare` and `execution.stateful` to
`incremental.run`.
"""
