"""``python -m lot_grpc``."""

from lot_grpc.cli import main

if __name__ == "__main__":
    main()
