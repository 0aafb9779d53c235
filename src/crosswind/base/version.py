"""The version of the package, and those of others."""

__version__ = "0.1.0"


def installed(package: str) -> str:
    """The version of a package; empty where it is not installed."""
    from importlib import metadata  # it loads the modules of mail, and this one is imported with the package

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
