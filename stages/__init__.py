"""The stages of a build and the code that they share; README.md shows the folders."""

from stages.support.system.loaded_code import install

install()
