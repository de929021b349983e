"""Settings: the declarations of all settings, with their types, defaults and help texts.

`sections` contains the declarations, `setting` parses them and validates values. Files and layers are handled by
`odfpy.coordinator.storage.config`. Components that use a setting (an engine, a server, a source) get its default here.
"""
