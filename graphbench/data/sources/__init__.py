"""Downloads, and readers of the formats of published files."""
