"""Fund research with GPU time: what was delivered, what was owed, and the weights that follow."""

__version__ = "0.1.0"
