"""A2A servers: one agent function behind gRPC, JSON-RPC and REST, in protocol v1.0 and v0.3."""
