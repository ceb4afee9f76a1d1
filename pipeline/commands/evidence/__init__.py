"""`doit evidence`: evidence for a release."""

from pipeline.commands.evidence.command import Evidence as Evidence
