from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpupolicy.domain import Quarter
from gpupolicy.errors import InvalidInput, InvalidPolicy
from gpupolicy.policyfiles import load_policy, parse_duration_s, parse_policy, parse_share, policy_in_force

GOOD = """\
quarter: 2026Q4
lookback: 14d
minimum_runtime_cap: 4h
decided_in: docs/decisions/the-meeting.md
tree:
  name: lab
  owner: Grace
  children:
    - name: a
      share: 50%
      children:
        - {name: a1, share: 70%, owner: Ada}
        - {name: a2, share: 0.1}
    - name: b
      share: 1/3
      accounts: [b-old, b-new]
      researchers:
        - {name: cy, share: 100%}
"""

HEAD = "quarter: 2026Q4\ntree:\n  name: a\n  children:\n"
BAD = """\
quarter: 2026Q9
lookbak: 7d
minimum_runtime_cap: -8h
tree:
  name: org
  children:
    - &a
      name: x
      share: 80%
      children: [*a]
    - name: x
      share: 35
      colour: red
    - name: y
      share: 0.5
      owner: Ada
      owner: Ben
    - share: much
"""


def faults_of(text: str) -> list[str]:
    with pytest.raises(InvalidPolicy) as refused:
        parse_policy(text, name="p.yaml")
    return list(refused.value.faults)


def test_a_policy_file_says_quarter_lookback_cap_and_tree() -> None:
    policy = parse_policy(GOOD, name="p.yaml")

    assert (policy.quarter, policy.lookback_h, policy.minimum_runtime_cap_s) == (
        Quarter(2026, 4),
        336,
        14_400,
    )
    assert policy.decided_in == "docs/decisions/the-meeting.md"
    assert {place.path: place.entitlement for place in policy.tree.places} == {
        "lab": 1,
        "lab/a": Fraction(1, 2),
        "lab/a/a1": Fraction(35, 100),
        "lab/a/a2": Fraction(5, 100),
        "lab/b": Fraction(1, 3),
        "lab/b/cy": Fraction(1, 3),
    }
    assert policy.tree["lab/b"].node.accounts == ("b-old", "b-new")
    assert policy.tree["lab/b/cy"].node.is_researcher
    assert policy.tree["lab/a/a1"].node.owner == "Ada"


def test_lookback_and_cap_default_to_seven_days_and_eight_hours() -> None:
    policy = parse_policy("quarter: 2026Q4\ntree: {name: lab}", name="p.yaml")

    assert (policy.lookback_h, policy.minimum_runtime_cap_s) == (168, 28_800)


def test_all_faults_of_a_file_come_at_once_with_line_and_node() -> None:
    assert faults_of(BAD) == [
        "p.yaml:1: quarter: '2026Q9' is no quarter; write it like 2026Q4",
        "p.yaml:2: lookbak: unknown key; did you mean 'lookback'?",
        "p.yaml:3: minimum_runtime_cap: '-8h' is below zero",
        "p.yaml:6: org: the shares of its children add up to 130%; at most 100%",
        "p.yaml:7: org/x/itself: cycle: the node is its own ancestor",
        "p.yaml:11: org/x: the same name as on line 7; siblings need different names",
        "p.yaml:12: org/x: share: '35' is outside 0% to 100%; write 35% for percent",
        "p.yaml:13: org/x: colour: unknown key; known are name, share, owner, accounts, children, researchers",
        "p.yaml:17: org/y: owner: given twice; keep one",
        "p.yaml:18: org/child 3: name: is missing",
        "p.yaml:18: org/child 3: share: 'much' is not a share such as 35%, 0.35 or 7/20",
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "p.yaml:1: the file is empty; it needs a quarter and a tree"),
        ("- a\n- b\n", "p.yaml:1: a policy file begins with keys such as quarter: and tree:"),
        ("quarter: 2026Q4\n", "p.yaml:1: tree: is missing"),
        ("quarter: 2026Q4\ntree: {name: a, share: 50%}", "p.yaml:2: a: share: the root holds 100%"),
        (
            "quarter: 2026Q4\ntree: {name: a/b}",
            "p.yaml:2: a/b: name: 'a/b' cannot be a node's name: no '/', no line break, no blanks around it",
        ),
        (
            "quarter: 2026Q4\nlookback: 90min\ntree: {name: a}",
            "p.yaml:2: lookback: '90min': a lookback is a whole number of hours, at least one",
        ),
        (
            "quarter: 2026Q4\nlookback: 7\ntree: {name: a}",
            "p.yaml:2: lookback: '7' is not a duration such as 7d, 8h, 15min or 30s",
        ),
        (
            HEAD + "  - {name: b, share: 1/2, accounts: [X]}\n  - {name: c, share: 1/2, accounts: [x]}",
            "p.yaml:6: a/c: accounts: 'x' is that of a/b on line 5 too",
        ),
        (
            HEAD + "  - {name: b, share: 0.3333333333, children: [{name: c, share: 0.3333333333}]}",
            "p.yaml:5: a/b/c: share: too many digits down the tree; write it with fewer",
        ),
        ("a: [\n", "p.yaml:2: this is not YAML: expected the node content, but found '<stream end>'"),
    ],
)
def test_each_fault_says_what_would_be_right(text: str, fault: str) -> None:
    assert faults_of(text) == [fault]


def test_a_file_that_is_not_there_or_not_text_is_one_fault(tmp_path: Path) -> None:
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")

    with pytest.raises(InvalidPolicy, match="No such file"):
        load_policy(tmp_path / "none.yaml")
    with pytest.raises(InvalidPolicy, match="not UTF-8"):
        load_policy(tmp_path / "binary.yaml")


@given(st.integers(0, 10_000))
def test_shares_are_what_was_typed_not_their_nearest_double(hundredths: int) -> None:
    typed = f"{hundredths // 100}.{hundredths % 100:02}"

    assert parse_share(f"{typed}%") == Fraction(hundredths, 10_000)
    assert parse_share(f"0.{hundredths % 10_000:04}") == Fraction(hundredths % 10_000, 10_000)


@pytest.mark.parametrize(
    ("text", "seconds"), [("7d", 604_800), ("1.5h", 5400), ("90min", 5400), ("0s", 0), ("2 w", 1_209_600)]
)
def test_durations_name_their_unit(text: str, seconds: int) -> None:
    assert parse_duration_s(text) == seconds


@pytest.mark.parametrize("text", ["8", "-1h", "1.5s", "forever", "", "1h30"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=text or "duration"):
        parse_duration_s(text)


def test_the_policy_in_force_is_named_for_its_quarter(tmp_path: Path) -> None:
    (tmp_path / "2026Q3.yaml").write_text(GOOD)

    assert policy_in_force(tmp_path, Quarter(2026, 3)) == tmp_path / "2026Q3.yaml"
    with pytest.raises(InvalidInput, match=r"no policy in force for 2026Q4.*holds 2026Q3.*--policy FILE"):
        policy_in_force(tmp_path, Quarter(2026, 4))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("quarter: 2026Q3\ntree: " + "{name: n, children: [" * 3000 + "]}" * 3000, "nested too deeply"),
        ("quarter: 2026Q3\ntree: " + "{name: n, children: [" * 220 + "]}" * 220, "nested too deeply"),
        (
            "x0: &x0 [a,a,a,a,a,a,a,a,a,a]\n"
            + "".join(f"x{n}: &x{n} [{','.join([f'*x{n - 1}'] * 10)}]\n" for n in range(1, 9)),
            "more than 200,000 values",
        ),
    ],
    ids=["3000 levels", "220 levels", "aliases of aliases"],
)
def test_a_file_that_would_take_all_memory_is_refused(text: str, told: str) -> None:
    (fault,) = faults_of(text)

    assert told in fault


@pytest.mark.parametrize("typed", ["1e400", "1e-999999999", "NaN", "inf", "0x1", "1/0", "1_0%", "9" * 5000, "--5%", ""])
def test_what_is_no_share_is_refused_at_once(typed: str) -> None:
    with pytest.raises(ValueError, match="is not a share"):
        parse_share(typed)
