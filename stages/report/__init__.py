"""Stage report: results of the other stages to report.json, pages, and the terminal's table."""

from stages.report.config import ReportConfig
from stages.report.stage import STAGE

__all__ = ["STAGE", "ReportConfig"]
