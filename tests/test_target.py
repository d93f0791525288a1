"""Target mode: what is proposed carries the wants when solved forward, and nothing cheaper does."""

import random
from typing import Any

import pytest
from test_properties import examples, scenarios

from sizing import Refusal, RefusedError, Scenario, solve
from sizing.carried import Setting, Want, last_that, typed_ratio
from sizing.pools import asked_divisor, pin_divisor, pin_is_ignored, rank_of
from sizing.target import Answer, Near, Row, aim
