"""Remarks on a set of facts: how its file was read, what is doubtful in it, and what it is.

By kind, under the module that makes them; see `Remark`.
"""

SENTENCES = {
    # facts/tables.py
    "utf16": "The file was read as UTF-16, because its first bytes say so.",
    "no_header_questions": (
        "The file has no header: every row begins with a question. The columns were read as "
        "{columns}."
    ),
    "no_header_endings": (
        "The file has no header: all {rows} end in {ending}. The columns were read as {columns}."
    ),
    "quotes_as_characters": (
        "Quotes were read as ordinary characters, because only then is the file a table ({rows})."
    ),
    "backslash_before_quotes": (
        "A backslash was read as escaping quotes, because only then is the file a table ({rows})."
    ),
    "sheets_not_read": (
        "Only the first sheet of the workbook, {sheet}, was read. These were not: {others}."
    ),
    "dates_written": (
        "{rows}, {first}row {row}, {has} a date or time, which a workbook stores as a number. "
        "The first was read as {example}."
    ),
    # facts/objects.py
    "rows_are_lists": "The rows are lists ({count:,}): the first of them names the columns.",
    "rows_found_under": "Rows were found under {names}. Other entries beside them are not read.",
    # facts/files.py
    "system_prompts_not_read": (
        "System prompts in the rows are not read: {count:,}. A run has one system prompt for all "
        "rows."
    ),
    "known_form": "The file was recognised as {form}. Columns: {fields}.",
    "columns_together": "Numbered columns were read in their order: {fields}.",
    "label_not_read": (
        "The column {column} has 0 and 1 and is not read. If 0 marks wrong answers, name the "
        "column is_correct."
    ),
    "split_not_read": (
        "The column {column} does not name the groups forget, retain and holdout, so it is not "
        "read: {counts}."
    ),
    "no_score_column": (
        "No column of scores was found. These columns were not read: {columns}. If one of them "
        "holds the scores, choose it as score."
    ),
    "answers_like_classes": (
        "All answers in the column label are {answers}. If these are classes, choose the column "
        "that holds the answers."
    ),
    "unseen_characters": (
        "Rows with invisible characters ({codes}): {count:,}. The first is row {row}. The "
        "characters are kept, and the model reads them."
    ),
    "attack_prompts": (
        "Attack prompts: {count:,}. They are used for probing and are not trained on."
    ),
    "different_answers": (
        "Contradiction: {questions} with different answers in different rows. The first is "
        "{question} in rows {places}: {answers}."
    ),
    "different_scores": (
        "Contradiction: {questions} with different scores in different rows. The first is "
        "{question} in rows {places}: {scores}."
    ),
    "asked_twice": (
        "Duplicates, which count twice: {questions}. The first is {question} in rows {places}."
    ),
    # facts/cells.py
    "list_as_answer": (
        "{rows}, {first}row {row}, {has} a list or an object, written as text, as the answer. Its "
        "contents were read."
    ),
    "several_answers": (
        "{rows}, {first}row {row}, {has} several right answers. The first is trained, and all are "
        "accepted."
    ),
    "answer_points": (
        "{rows}, {first}row {row}, {has} an answer that points to one of its choices (numbers "
        "count from {base}). That choice was read."
    ),
    "list_as_text": (
        "{rows}, {first}row {row}, {has} a list as Python or numpy prints it. Its items were read."
    ),
    "list_by_semicolons": (
        "{rows}, {first}row {row}, {has} a list separated by semicolons. Its items were read."
    ),
    "empty_items": (
        "{rows}, {first}row {row}, {has} empty items in a list (None, nan). They were left out."
    ),
    "score_unknown": (
        "{rows}, {first}row {row}, {has} a score such as NA, NaN or –. It was read as unknown, not "
        "as zero."
    ),
    "score_thousands": (
        "{rows}, {first}row {row}, {has} a score whose points were read as thousands separators "
        "(25.692 as 25,692)."
    ),
    "score_commas_unclear": (
        "{rows}, {first}row {row}, {has} a score whose comma may separate thousands or decimals "
        "(25,692). It was read as thousands."
    ),
    "score_decimal_comma": (
        "{rows}, {first}row {row}, {has} a score with a decimal comma (3,5). It was read as a "
        "decimal."
    ),
    "score_percent": (
        "{rows}, {first}row {row}, {has} a score in percent. Its number was read (45% as 45)."
    ),
    "score_decimals": (
        "{rows}, {first}row {row}, {has} a score whose point may separate thousands or decimals "
        "(25.692). It was read as a decimal."
    ),
    "cell_unknown": (
        "{rows}, {first}row {row}, {has} a cell such as NA, NaN or –. It was read as empty."
    ),
    "question_unknown": (
        "{rows}, {first}row {row}, {has} a question that may mean “unknown” (NA, NaN ...). It was "
        "read as it stands."
    ),
    "answer_unknown": (
        "{rows}, {first}row {row}, {has} an answer that may mean “unknown” (NA, NaN ...). It was "
        "read as it stands."
    ),
    "answer_truth_value": (
        "{rows}, {first}row {row}, {has} a truth value as the answer. It was read as yes or no."
    ),
    "answer_in_brackets": (
        "{rows}, {first}row {row}, {has} an answer in brackets or braces that could not be read as "
        "a list. It was taken as it stands."
    ),
    "type_not_read": (
        "{rows}, {first}row {row}, {has} a type that RWKU uses for its attacks. The file is not "
        "RWKU's, so the type is not read."
    ),
    "wrong_answers": (
        "{rows}, {first}row {row}, {has} an answer that the file marks as wrong. It was read as a "
        "wrong answer to its question, not as a fact."
    ),
    "wrong_answers_alone": (
        "{rows}, {first}row {row}, {has} an answer that the file marks as wrong, and no row has "
        "the right one. It was not used."
    ),
    "right_and_wrong": (
        "{rows}, {first}row {row}, {has} an answer that the file marks as wrong there and as right "
        "elsewhere. It counts as right."
    ),
    "digits_lost": (
        "{rows}, {first}row {row}, {has} a number that a spreadsheet shortened, such as "
        "1.23457E+15. Its other digits are lost. Format the column as text and export the table "
        "again."
    ),
    # facts/tiers.py
    "tiers_equal_scores": (
        "All scores are the same: {counts}. One tier shows no gap between rare and popular."
    ),
    "tiers_two_scores": "There are two different scores, so there are two tiers: {counts}.",
    "tiers_thirds": (
        "Tiers are thirds of this set's scores; equal scores stay in one tier: {counts}."
    ),
    "tiers_of_file": "Tiers are as the file gives them: {counts}.",
    # facts/retain.py
    "holdout_from_retain": (
        "The set has no holdout rows, so {holdout:,} of its {retain:,} retain rows are held out of "
        "training."
    ),
    "no_holdout": (
        "Nothing is held out, because there is only one question to retain and training needs it. "
        "So nothing measures what happens to facts that were never trained on."
    ),
    "examples_from_retain": (
        "{count:,} of the {facts} to retain serve as examples in the prompt and are not trained on."
    ),
    "world_retain": "The retain set: {retain:,} facts of the included set “{world}”.",
    "world_holdout": "The held-out facts: {holdout:,} of the included set “{world}”.",
    "neighbours_retain": (
        "The retain set: {retain:,} facts of the included set “{world}”. They share a relation or "
        "an answer with the forget set; those nearest in score come first."
    ),
    "split_retain": (
        "{retain:,} of the {facts}, every third by score, are kept instead of forgotten, so that "
        "facts of the same kind are protected and compared."
    ),
    "retain_from_set": "{facts} to retain {come} from {name}.",
    "own_retain_unused": "The set's own rows to retain are not used: {retain:,}.",
    "own_holdout_unused": "The set's own held-out rows are not used: {holdout:,}.",
    # facts/world/__init__.py
    "scores_are_exposures": (
        "Score: how often pretraining showed the fact, times {factor:g} to match Wikidata's scale."
    ),
    "neighbours_kept": (
        "{count:,} neighbours, other facts about the subjects to forget, are to be kept and are "
        "never trained on."
    ),
    # facts/catalog.py
    "pair": (
        "Both answers are {answer}: {rare} has a score of {rare_score:,.0f}, {popular} of "
        "{popular_score:,.0f}."
    ),
    "cities": (
        "Scores are populations (GeoNames, CC BY 4.0). Use a larger language model: the included "
        "small ones do not know these facts."
    ),
    # facts/scale.py
    "invented": "These facts are invented, and no model has ever seen them, so their score is 0.",
    # facts/benchmarks.py
    "two_clusters": (
        "The scores form two clusters, {low:,.0f} to {below:,.0f} and {above:,.0f} to {high:,.0f}, "
        "with nothing between them, so there are no facts of medium popularity."
    ),
    "one_popular_answer": (
        "{count:,} of the {popular:,} popular facts have the same answer, {answer}; the {rare:,} "
        "rare facts have {different:,} different ones. A gap between rare and popular facts may "
        "come from that and not from popularity."
    ),
    "subject_in_answer": (
        "In {count:,} of the {rare:,} rare facts, the answer contains the name in the question."
    ),
    "one_wikidata_entry": (
        "In {count:,} of the {facts}, subject and answer are linked to the same Wikidata entry, "
        "whose popularity then counts twice."
    ),
    "no_rewordings": "Facts to forget without rewordings: {count:,}.",
    "rwku_no_scores": (
        "RWKU has no popularity scores. Look them up before you use a method that needs them."
    ),
    "rwku_famous": (
        "All {people:,} people to forget are famous, so expect few rare facts about them."
    ),
    "rwku_holdout": (
        "The held-out facts are sentences with a blank: RWKU's level 1 on neighbours. Some of "
        "these facts are also trained on, as questions."
    ),
    "hubble_first": (
        "For each number of times that a text was planted, the set has the first {people:,} "
        "people, and for each person the facts of the biography as YAGO words them."
    ),
    "hubble_scores": (
        "A score is the number of times that pretraining showed the fact: {levels}. This holds "
        "only for Hubble's perturbed models; its standard models never read these facts."
    ),
    "hubble_never": (
        "Never planted in the training data, and so neither forgotten nor retained: {facts}."
    ),
}
