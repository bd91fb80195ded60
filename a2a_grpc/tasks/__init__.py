"""The task engine: an event log with one number per task, and the turns that write it."""
