"""The commands of `a2a-grpc`, a module each: `run(words)` does one, `parser()` reads its words."""
