"""The version of this package. Floor 0."""

__version__ = "0.1.0"
