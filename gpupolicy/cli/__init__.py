"""The command line: parse, call one function of the cycle, print. The only caller of the clock."""

from gpupolicy.cli.main import main

__all__ = ["main"]
