"""`python -m adapop`."""

from adapop.cli import main

raise SystemExit(main())
