"""Checks the inputs of page events: each value must have a type that its component sends.

Gradio checks choices, bounds and files, and passes on everything else. A value of another type was
forged; it is refused here, so that no screen has to check it again.
"""

from collections.abc import Sequence

import gradio as gr
from gradio.blocks import BlockFunction

NUMBER = (int, float)
CHOICE = (str, *NUMBER)
LARGEST = 2**63  # Gradio's JSON writer fails on integers from 2**64 up


def misfit(event: BlockFunction, data: Sequence) -> str:
    """Why an event's values cannot come from its page, without quoting them; empty if they can.

    data: one value per input of the event, as sent. State, which the server holds, and values of
    programs, which the endpoints check, are always accepted.
    """
    if event.api_visibility == "public":
        return ""
    if len(data) != len(event.inputs):
        return f"This event takes {len(event.inputs)} values and got {len(data)}. Reload the page."
    for place, (component, value) in enumerate(zip(event.inputs, data), 1):
        if not _fits(component, value):
            kind = "of a kind that its component never sends"
            return f"Value {place} of this event is {kind}. Reload the page."
    return ""


def _fits(component: gr.Component, value: object) -> bool:
    if isinstance(component, gr.BrowserState):
        return value is None or isinstance(value, type(component.default_value))
    if isinstance(component, (gr.Number, gr.Slider)):
        return value is None or _is(value, NUMBER)
    if isinstance(component, gr.Textbox):
        return value is None or isinstance(value, str)
    if isinstance(component, gr.Checkbox):
        return isinstance(value, bool)
    if isinstance(component, gr.Dropdown) and component.multiselect:
        return value is None or (isinstance(value, list) and all(_is(one, CHOICE) for one in value))
    if isinstance(component, (gr.Dropdown, gr.Radio)):
        # None is accepted only for optional or free-text inputs
        empty = component.value is None or getattr(component, "allow_custom_value", False)
        return empty if value is None else _is(value, CHOICE)
    return True


def _is(value: object, kinds: tuple[type, ...]) -> bool:
    fits = not isinstance(value, NUMBER) or abs(value) < LARGEST  # False for NaN
    return isinstance(value, kinds) and not isinstance(value, bool) and fits
