"""Reports of one run or several: one HTML page, or a zip archive. No torch.

Read `record` (a run's files, read once) and `table`, then `page`, whose parts are `story`,
`settings`, `tables`, `recovery` and `comparison`; `archive` writes the zip. The page's HTML and
style are in assets/report.
"""

from adapop.report.archive import write_archive
from adapop.report.page import write_report

__all__ = ["write_archive", "write_report"]
