"""In which order a page's wishes are answered. Gradio answers several at once, and on a busy machine an older wish may
be answered last: its answer would undo a newer one."""

# what changes the set, the anchors or the place of a page: "no file yet", said after the file, would empty its set
IN_TURN = {"concurrency_id": "session", "concurrency_limit": 1}
# the two below wait for answers of the same function, unless they are given a `concurrency_id`
EACH_IN_TURN = {"concurrency_limit": 1, "trigger_mode": "multiple"}
# of wishes that come while one is answered the last alone is answered; Gradio's "once" would drop it too. Of an event
# of one component one listener at most may wait so: tests/test_page.py
LAST_STAYS = {"concurrency_limit": 1, "trigger_mode": "always_last"}
