"""Dataset cards: schema, files, names and features."""
