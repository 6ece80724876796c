from __future__ import annotations

import pytest
from support.gm import Manager


@pytest.fixture
def manager() -> Manager:
    """One job, decided step by step."""
    return Manager()
