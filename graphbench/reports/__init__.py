"""Reports: every number beside the number expected."""
