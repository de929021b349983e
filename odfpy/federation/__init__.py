"""Federation: one question over the data of many organizations, each of which shows what it wants (ADR 0042).

Subpackages: `model` (documents), `store` (state), `sources` (where data is read), `sql` (questions in the words of
each), `relay` (who asks, what is answered, and the tickets that rows are read with), `execution` (a query and its
answer), `evidence` (answers that are kept, to be verified later), `spark` (frames of Spark), and `demo` (a web to be
tried).
"""
