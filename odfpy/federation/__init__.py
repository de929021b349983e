"""Federation: one SQL query over the data of many organizations, each of which decides what it shows (ADR 0042).

Subpackages: `model` (declarative documents), `store` (persistent state), `sources` (adapters of databases and files),
`sql` (fragments of queries, rewritten for each relay and source), `relay` (planning, answers, tickets), `execution`
(running a query from the client's side), `evidence` (signed answers that are stored and can be verified later), `spark`
(a Spark data source), and `demo` (a reference deployment to try it out).
"""
