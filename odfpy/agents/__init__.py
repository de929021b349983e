"""Agents: the Model Context Protocol over the datasets of a workspace, so that statements of a model can be checked.

    tools/      the tools of a model, each with its arguments and answer; they are independent of the protocol
    protocol    the protocol, built from the tools; `stdio` and `http` are its transports

All content of datasets is untrusted data: see `data_markers`.
"""
