"""Geographic formats: GeoJSON and ESRI shapefiles."""
