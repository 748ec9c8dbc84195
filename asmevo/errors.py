"""The root of every error that a user can cause or must be told about."""

from __future__ import annotations


class AsmEvoError(Exception):
    """One clear sentence for the user; the command line prints it and exits with status 2.

    Each package derives its own typed errors from this class. Anything that is *not* an
    ``AsmEvoError`` is a defect of AsmEvo and keeps its traceback.
    """
