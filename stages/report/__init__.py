"""Stage report: results of the stages as report.json, pages, and a terminal table."""

from stages.report.config import ReportConfig
from stages.report.stage import STAGE, ReportStage

__all__ = ["STAGE", "ReportConfig", "ReportStage"]
