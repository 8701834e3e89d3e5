import polars as pl
from charts.specs import column, rows, sentence

from gpupolicy import charts
from gpupolicy.charts import theme
from gpupolicy.charts.budget import branches

TREE = [
    ("lab", 0, None, 1.0, 1.0, 1.0),
    ("lab/a", 1, "lab", 0.5, 0.5, 0.8),
    ("lab/a/a1", 2, "lab/a", 0.7, 0.35, 1.3),
    ("lab/a/a1/ada", 3, "lab/a/a1", 0.2, 0.07, None),
    ("lab/a/a2", 2, "lab/a", 0.1, 0.05, 0.4),
    ("lab/b", 1, "lab", 0.5, 0.5, 1.2),
    ("lab/b/b1", 2, "lab/b", 1.0, 0.5, 1.2),
]


def tree() -> pl.DataFrame:
    names = ["path", "depth", "parent", "share", "entitlement", "balance"]
    frame = pl.DataFrame(TREE, schema=names, orient="row")
    return frame.with_columns(
        name=pl.col("path").str.split("/").list.last(),
        owner=pl.lit("Ada"),
        is_leaf=pl.col("path").is_in(["lab/a/a1/ada", "lab/a/a2", "lab/b/b1"]),
        entitled_gpus=1000 * pl.col("entitlement"),
        entitled_gpu_h=2_208_000 * pl.col("entitlement"),
        strict_ratio=pl.lit(0.97),
        queue_rank=pl.when(pl.col("depth") >= 2).then(pl.int_range(1, 8)),
    )


def test_a_box_is_as_tall_as_its_entitlement_and_lies_inside_its_parent() -> None:
    boxes = {row["path"]: (row["depth"], row["top"], row["bottom"]) for row in rows(charts.budget_tree(tree()))}

    assert boxes["lab/a/a1"] == (2, 0.0, 0.35)
    assert boxes["lab/a/a2"] == (2, 0.35, 0.35 + 0.05)
    assert boxes["lab/b"] == (1, 0.5, 1.0)
    assert boxes["lab/b/b1"] == (2, 0.5, 1.0)


def test_a_box_says_share_and_entitlement() -> None:
    labels = column(charts.budget_tree(tree()), "label")

    assert labels[2:5] == ["a1\u200270% → 35%", "ada\u200220% → 7%", "a2\u200210% → 5%"]


def test_the_tree_below_a_node_fills_the_picture() -> None:
    shown = rows(charts.budget_tree(tree(), under="lab/a"))

    assert [(row["name"], row["depth"]) for row in shown] == [("a", 0), ("a1", 1), ("ada", 2), ("a2", 1)]


def test_low_balance_goes_first_and_a_node_without_entitlement_last() -> None:
    children = tree().filter(pl.col("name").is_in(["ada", "a2", "b1"]))

    picture = charts.queue_balances(children, hues={})

    assert column(picture, "name") == ["a2", "b1", "ada"]
    assert column(picture, "figure") == ["0.40", "1.20", "nothing entitled: last"]
    title = picture.to_dict()["layer"][0]["encoding"]["x"]["title"]
    assert title == "balance = charged / entitled (low goes first)"


def test_a_program_has_one_colour_in_every_picture() -> None:
    hues = charts.program_hues(tree()["path"].to_list())

    assert hues["lab/a"] == hues["lab/a/a1"] == hues["lab/a/a1/ada"]
    assert hues["lab/b"] == hues["lab/b/b1"] != hues["lab/a"]
    below_b = charts.budget_tree(tree(), under="lab/b")
    assert set(column(below_b, "hue")) == {hues["lab/b"]}


def test_no_program_wears_a_colour_that_means_delivered_missing_or_free() -> None:
    reserved = {theme.DELIVERED, theme.SHORTFALL, theme.FREE, theme.OWED, theme.ENTITLED}

    assert reserved.isdisjoint(theme.PROGRAM_HUES)
    assert len(set(theme.PROGRAM_HUES)) == 9


def test_the_table_unfolds_the_way_to_the_chosen_node() -> None:
    assert "lab/a/a1/ada" not in branches(tree(), "lab")["path"]
    assert "lab/a/a1/ada" in branches(tree(), "lab/a/a1")["path"]
    assert "lab/a/a1/ada" in branches(tree(), "lab/a/a1/ada")["path"]


def test_rows_of_the_tree_are_words_for_people() -> None:
    row = charts.tree_rows(tree(), "lab").row(2, named=True)

    assert row["node"] == "\u2003\u2003a1"
    assert (row["share"], row["entitlement"], row["gpus"], row["gpu_hours"]) == ("70%", "35%", "350", "772,800")
    assert "97.0%" in row["delivered"]


def test_an_empty_tree_and_a_leaf_give_a_sentence_that_helps() -> None:
    assert sentence(charts.budget_tree(tree().clear())).startswith("The budget tree is empty")
    assert sentence(charts.queue_balances(tree().clear(), hues={})).startswith("Nothing below this node")
