"""The components that a domain brings, and how a name on a card or in a configuration finds one."""
