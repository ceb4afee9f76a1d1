"""The forms of Firmline: packages with FORM (stages.delivery.export.form) and their templates."""
