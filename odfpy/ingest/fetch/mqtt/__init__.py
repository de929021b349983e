"""Messages of MQTT brokers (ODF specification, "FetchStep: Mqtt")."""
