"""The forms of Firmline: packages with FORM (stages.export.form) and their templates."""
