"""The command `odf`: each command parses its options, calls `odfpy.coordinator`, and prints.

    app, commands   the entry point, and the table of all commands; the module of a command is imported when it runs
    grammar         how commands are declared; the options that all of them share
    session         workspace, output and progress of one command
    screen          tables, charts, progress, and messages
    command_server  a process that has imported everything, so that commands start in milliseconds

The other folders have the modules of the commands: `odf pull` is in `datasets/ingest.py`.
"""
