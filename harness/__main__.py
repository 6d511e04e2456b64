"""`python -m harness` is `chaos`."""

from harness.cli.app import main

if __name__ == "__main__":
    main()
