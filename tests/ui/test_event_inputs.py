import gradio as gr
import pytest

from adapop.errors import ConfigError
from adapop.ui.event_inputs import misfit
from adapop.ui.run.configuration import config_of

SECRET = "Zanzibar-Quux"


@pytest.fixture(scope="module")
def events(demo):
    return [event for event in demo.fns.values() if event.api_visibility != "public"]


def at_first(component):
    """A component's value as its page sends it before anybody acts."""
    return None if component.stateful else component.postprocess(component.value)


def test_values_fit_the_events(events):
    for event in events:
        assert not misfit(event, [at_first(one) for one in event.inputs])
    for event in events:
        right = [at_first(one) for one in event.inputs]
        assert "got" in misfit(event, [*right, None])
        assert not right or "got" in misfit(event, right[:-1])


@pytest.mark.parametrize(("component", "good", "bad"), [
    (gr.Number(1.0), (None, 0, -1.5, 2**63 - 1), (True, "7", [], {}, 10**30, float("nan"), float("inf"))),
    (gr.Slider(1, 10), (3, 0.5), ("3", [3], False)), (gr.Textbox(), (None, "", SECRET), (7, [], {"a": SECRET})),
    (gr.Checkbox(), (True, False), (None, 1, "yes")),
    (gr.Dropdown(["a"], value="a"), ("a", 7), (None, [], ["a"], {}, True)),
    (gr.Dropdown(["a"], value=None), (None, "a"), ({}, [None])),
    (gr.Dropdown(["a"], value="a", allow_custom_value=True), (None, SECRET), ([SECRET],)),
    (gr.Dropdown(["a"], value=["a"], multiselect=True), (None, [], ["a"]), ("a", [None], [{}], {})),
    (gr.Radio(["a"], value="a"), ("a",), (None, [], {})),
    (gr.BrowserState({}), (None, {}, {"set": 1}), ([], "", 0)), (gr.BrowserState(""), (None, SECRET), ([], {}, 0)),
    (gr.BrowserState([]), (None, [], [{}]), ("", {}, True)), (gr.HTML(), (None, {}, "x", 7), ()),
])  # fmt: skip
def test_the_kinds_of_each_component(component, good, bad):
    with gr.Blocks() as demo:
        component.render()
        gr.Button().click(lambda value: None, component, None, api_visibility="private")
    (event,) = demo.fns.values()
    assert [value for value in good if misfit(event, [value])] == []
    assert [value for value in bad if not misfit(event, [value])] == []
    assert all(SECRET not in misfit(event, [value]) for value in bad)


@pytest.mark.parametrize("kept", [["sandbox"], [{}] * 40, [[SECRET]] * 17])
def test_settings_that_another_version_kept_are_refused_in_words(kept):
    with pytest.raises(ConfigError, match="not those of tab 3"):
        config_of(kept)
