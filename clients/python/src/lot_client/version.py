"""The version of this package, which follows the server's."""

__version__ = "0.1.0"
