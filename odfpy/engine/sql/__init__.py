"""The text of queries, before an engine sees it: dialects, projections of changelogs, policies for late rows."""
