"""Adapters: things that are no agents yet, as the function of one."""
