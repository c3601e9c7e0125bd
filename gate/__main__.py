"""Lets `python -m gate` do what `parity-gate` does."""

from gate.cli import main

if __name__ == "__main__":
    main()
