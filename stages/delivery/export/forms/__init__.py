"""The forms of Firmline: packages with FORM (delivery.export.form) and templates."""
