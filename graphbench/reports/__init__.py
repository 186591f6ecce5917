"""Reports: every number next to the number expected."""
