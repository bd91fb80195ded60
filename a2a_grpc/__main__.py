"""`python -m a2a_grpc`: the command line without the installed script. Holds nothing of its own."""

from a2a_grpc.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
