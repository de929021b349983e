"""Logs of Ethereum chains (ODF specification, "FetchStep: EthereumLogs")."""
