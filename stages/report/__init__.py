"""Stage report: results of the other stages to report.json, pages, and the terminal's table."""

from stages.report.config import ReportConfig
from stages.report.stage import STAGE, ReportStage

__all__ = ["STAGE", "ReportConfig", "ReportStage"]
