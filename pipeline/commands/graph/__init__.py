"""`doit graph`: the stages and layers of a recipe as a drawing."""
