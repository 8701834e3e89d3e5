import socket
import urllib.request
from pathlib import Path

import pytest
from skins.browser import served
from skins.three_weeks import make_store

from gpupolicy.errors import EnvironmentTrouble
from gpupolicy.serving import _free_port, _origins


def test_a_taken_port_gives_way_to_the_next_free_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        assert port < _free_port("127.0.0.1", port) <= port + 20


def test_an_address_that_is_not_ours_is_told_with_a_way_out() -> None:
    with pytest.raises(EnvironmentTrouble, match=r"cannot listen on 192\.0\.2\.1.*--port"):
        _free_port("192.0.2.1", 5006)


def test_browsers_may_come_by_loopback_and_by_the_names_they_were_given() -> None:
    assert _origins("127.0.0.1", 5006, ["gpus.example.org"]) == [
        "127.0.0.1:5006",
        "localhost:5006",
        "gpus.example.org",
    ]


@pytest.mark.slow
def test_the_dashboard_answers_at_the_address_it_tells_and_ends_on_ctrl_c(tmp_path: Path) -> None:
    store, policy = make_store(tmp_path)

    with served(store, policy) as address, urllib.request.urlopen(address) as answer:  # noqa: S310
        page = answer.read().decode()

    assert address.startswith("http://127.0.0.1:")
    assert "budget review" in page
