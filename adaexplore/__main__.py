"""``python -m adaexplore`` is ``adaexplore``."""

import sys

from adaexplore.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
