"""Let ``python -m rbfdiffnet`` run the command line."""

from rbfdiffnet.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
