"""Agents: the Model Context Protocol over the datasets of a workspace, so that what a model says can be checked.

    tools/      what a model may ask, each with its arguments and its answer; nothing in them knows of the protocol
    protocol    the protocol, made of the tools; `stdio` and `http` are its transports

Whatever comes from datasets is data that strangers may have written: see `marks`.
"""
