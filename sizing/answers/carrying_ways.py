"""Every way to set a deployment that carries what is wanted, the cheapest first, and the most that each can run."""

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from sizing.answers.alternatives import Way, ways
from sizing.answers.carrying_settings import Setting, Want, setting_on
from sizing.answers.solve import refuse_without_attention
from sizing.answers.target import most_of, spared_most
from sizing.engine.pools import pools_from_slots, running
from sizing.engine.rank import pin_rank, rank_from, rank_of
from sizing.engine.resolved import Rank
from sizing.scenario.inputs import Scenario


class CarryingWay(BaseModel):
    """One way that carries the wants. Requests are those of the whole deployment, at the first want's L."""

    model_config = ConfigDict(frozen=True)

    way: Way
    setting: Setting
    """What carries the wants and leaves KV the rest."""
    runs: int
    """What that runs."""
    widest: Setting
    """What runs the most, with a slot to spare where one fits, and still carries the other wants."""
    most: int
    """What that runs."""

    @property
    def flags(self) -> tuple[str, ...]:
        """What to set, as it is typed."""
        return (*self.way.flags, *self.setting.flags)

    @property
    def widest_flags(self) -> tuple[str, ...]:
        """What to set to run the most."""
        return (*self.way.flags, *self.widest.flags)


def carrying_ways(scenario: Scenario, wants: Sequence[Want]) -> tuple[CarryingWay, ...]:
    """The ways that carry all wants, at least one, sorted by what they cost (a larger dcp_size more):
    of those that cost the same what runs more comes first. Raises RefusedError where the flags that stand are refused.

    >>> [way.flags for way in carrying_ways(Scenario(), [Want(L=32768, requests=64)])][0]
    ('--dcp-size 4', '--max-mamba-cache-size 321')
    """
    found = [_carrying(way, tuple(wants)) for way in ways(scenario)]
    return tuple(sorted(filter(None, found), key=lambda one: one.way.cost(one.most)))


def _carrying(way: Way, wants: tuple[Want, ...]) -> CarryingWay | None:
    of_ratio = rank_from(way.resolved)
    setting = setting_on(of_ratio, wants)
    if setting is None:
        return None
    refuse_without_attention(way.scenario)
    first, *others = wants
    rank = pin_rank(of_ratio)
    wider = max(spared_most(rank, wants, 0, most_of(rank, wants, 0)), first.requests)
    widest = setting_on(of_ratio, (first.model_copy(update={"requests": wider}), *others))
    assert widest is not None, "the most that fits has a setting"
    runs, most = (_runs(rank, one, first) for one in (setting, widest))
    return CarryingWay(way=way, setting=setting, runs=runs, widest=widest, most=most)


def _runs(rank: Rank, setting: Setting, want: Want) -> int:
    """What the setting runs of the want's length [requests of the deployment]; `rank` is the one before it is set."""
    there = rank if setting.asked is None else pin_rank(rank_of(setting.scenario))
    return int(running(pools_from_slots(there, setting.slots), want.L)) * rank.scenario.attn_dp_size
