"""Start Dibs: `python app.py`. Everything it does is in `dibs.cli`."""

import sys

from dibs.cli import main

if __name__ == "__main__":
    sys.exit(main())
