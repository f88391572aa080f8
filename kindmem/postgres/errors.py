"""The one error of this package: it tells the operator what is wrong and what to do."""


class ClusterError(RuntimeError):
    """The database can't be found, started, stopped or prepared; the message says what to do."""
