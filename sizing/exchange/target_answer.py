"""The answer to wanted requests, in the vocabulary of answer.py."""

from sizing.answers.carrying_settings import Setting
from sizing.answers.solve import solve
from sizing.answers.target import Answer
from sizing.basics.problems import Refusal
from sizing.exchange.answer import Best, SizingAnswer, refusal
from sizing.exchange.sizing_answer import ends_of, refused_answer, sizing_answer
from sizing.explain.target_words import headline, reasons
from sizing.scenario.inputs import Scenario


def target_answer(answer: Answer, scenario: Scenario) -> SizingAnswer:
    """What carries the wants, with the pools of that setting; where they do not fit, what is known all the same."""
    words = f"{headline(answer)} {reasons(answer)}"
    if answer.setting is None:
        known = refused_answer(scenario, Refusal(kind="flags", engine_words="", cure=words))
        S = answer.here.way.S
        return known.model_copy(
            update={"refused": refusal("does_not_fit", words), "words": words, "S": S, "runs": None}
        )
    found = sizing_answer(solve(answer.setting.scenario))
    wanted = max(want.requests for want in answer.wants)
    return found.model_copy(
        update={"words": words, "best": _best(answer.setting, wanted), "flags": answer.setting.flags}
    )


def _best(setting: Setting, wanted: int) -> Best:
    low, high = ends_of(setting.ratio_low, setting.ratio_high)
    return Best(ratio=setting.ratio, ratio_low=low, ratio_high=high, pin=setting.pin, runs=wanted)
