"""The generator's output: four days made anew, and the quarter that is committed."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path

import pytest
from sample.log import LOG_BEGINS, QUARTER_ENDS, SampleLog, read_sample
from sample.making import SAMPLE, generate

sys.path.insert(0, str(SAMPLE))  # the generator is a script beside its modules


@pytest.fixture(scope="session")
def four_days(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate(tmp_path_factory.mktemp("four_days"), seed=3, days=4)


@pytest.fixture(scope="session")
def quarter() -> SampleLog:
    return read_sample(SAMPLE, cut=QUARTER_ENDS)


@pytest.fixture(scope="session", params=["four days", "the committed quarter"])
def log(request: pytest.FixtureRequest, four_days: Path, quarter: SampleLog) -> SampleLog:
    if request.param == "four days":
        return read_sample(four_days, cut=LOG_BEGINS + timedelta(days=4))
    return quarter
