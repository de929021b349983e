"""Settings: the one place that says which exist, of what type, with which default and what they are for.

`sections` declares them, `setting` reads the declarations and checks values. Files and layers are the business of
`odfpy.coordinator.storage.config`. Whatever takes a setting (an engine, a server, a source) has its default from here.
"""
