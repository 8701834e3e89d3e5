"""What tests look for in a chart's specification."""

from __future__ import annotations

from typing import Any

from gpupolicy.charts.theme import Picture


def rows(picture: Picture, *, layer: int = 0) -> list[dict[str, Any]]:
    """The data that a layer of the chart draws."""
    spec = picture.to_dict()
    drawn = spec["layer"][layer] if "layer" in spec else spec
    name = drawn.get("data", spec.get("data"))["name"]
    return list(spec["datasets"][name])


def column(picture: Picture, name: str, *, layer: int = 0) -> list[Any]:
    return [row[name] for row in rows(picture, layer=layer)]


def marks(picture: Picture) -> list[str]:
    return [layer["mark"]["type"] for layer in picture.to_dict()["layer"]]


def sentence(picture: Picture) -> str:
    """The words of an empty chart."""
    (row,) = rows(picture)
    return str(row["sentence"])
