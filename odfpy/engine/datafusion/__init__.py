"""The DataFusion engine: row by row transforms, preprocessing, ad hoc queries, and the provenance of rows.

engine           the engine, as the registry has it; light, and in the process of the caller
isolated         sends each request to a process that can be killed; `fork_server` forks such processes
request_handler  runs a request in that process
transform        derivatives: checks that a query works row by row, and runs it
ad_hoc           queries over whole datasets
failures         errors of DataFusion as errors of the query, with their place in the text
"""
