"""Tables that can be shared: each kind is one module that implements `contract.ReadableTable`."""
