"""The stages of a build and the code that they share; README.md shows the folders."""

from stages.former_names import install as find_former_names
from stages.support.system.loaded_code import install

install()
find_former_names()
