"""What a page's event may bring: values of the kinds that its components send.

Gradio checks choices, bounds and files, and hands on everything else as it came. A value of another
kind was written by hand; refused here, it needs no second look in any screen.
"""

from collections.abc import Sequence

import gradio as gr
from gradio.blocks import BlockFunction

NUMBER = (int, float)
CHOICE = (str, *NUMBER)
LARGEST = 2**63  # a number beyond cannot be sent back


def misfit(event: BlockFunction, data: Sequence) -> str:
    """Why the values of an event cannot have come from its page, in words that quote none of them;
    empty if they can.

    data: one value for each of the event's inputs, as it was sent. State, which the server holds
    itself, and values of programs, which endpoints check in their own words, fit always.
    """
    if event.api_visibility == "public":
        return ""
    if len(data) != len(event.inputs):
        return f"This event takes {len(event.inputs)} values and got {len(data)}. Reload the page."
    for place, (component, value) in enumerate(zip(event.inputs, data), 1):
        if not _fits(component, value):
            return (
                f"Value {place} of this event is of a kind that its component never sends. Reload "
                "the page."
            )
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
        # only what began empty, or may be typed, can be empty
        empty = component.value is None or getattr(component, "allow_custom_value", False)
        return empty if value is None else _is(value, CHOICE)
    return True


def _is(value: object, kinds: tuple[type, ...]) -> bool:
    fits = not isinstance(value, NUMBER) or abs(value) < LARGEST  # NaN does not
    return isinstance(value, kinds) and not isinstance(value, bool) and fits
