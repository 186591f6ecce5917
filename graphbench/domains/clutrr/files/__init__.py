"""Published CLUTRR files: reading their rows, and the source that makes samples of the rows."""
