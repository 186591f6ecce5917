"""Answers of language models: kept, resumed, scored and drawn; models of transformers as completers."""

import json
import sys

import pytest
import torch

import graphbench
from graphbench.core.errors import EvaluationError, MissingDependency, StoreError
from graphbench.domains.clrs_text import few_shot_examples, paper_protocol, prompts
from graphbench.reports.accuracy import accuracy_figure
from graphbench.tasks.text.completers import CausalModel
from graphbench.tasks.text.language import (
    Answer,
    dataset_prompts,
    evaluate_language_model,
    question_text,
    read_answers,
    size_scores,
)


class Oracle:
    """A model that knows the answers to all prompts but those with an odd index."""

    name = "oracle"

    def __init__(self, questions):
        self.known = {prompt.prompt: prompt for prompt in questions}
        self.calls = []

    def __call__(self, texts, characters):
        self.calls.append((list(texts), characters))
        found = [self.known[text] for text in texts]
        return [prompt.reference if prompt.index % 2 == 0 else "I do not know" for prompt in found]


@pytest.fixture
def questions():
    return [p for size in (4, 5) for seed in (3, 14) for p in prompts("bfs", size, 3, seed)]


def test_answers_are_scored_and_kept(questions, tmp_path):
    oracle = Oracle(questions)
    answers = evaluate_language_model(oracle, questions, tmp_path / "new" / "answers.jsonl", batch_size=5)
    assert [len(texts) for texts, _ in oracle.calls] == [5, 5, 2]
    assert [answer.correct for answer in answers] == [True, False, True] * 4
    assert [answer.key for answer in answers] == [("bfs", p.size, p.seed, p.index, True) for p in questions]
    assert answers[0].output == questions[0].reference
    assert read_answers(tmp_path / "new" / "answers.jsonl") == ("oracle", answers)
    longest = max(len(prompt.reference) for prompt in questions[:5])
    assert oracle.calls[0][1] == 2 * longest + 64


def test_a_second_run_asks_only_what_is_missing(questions, tmp_path):
    path = tmp_path / "answers.jsonl"
    evaluate_language_model(Oracle(questions), questions[:4], path)
    oracle = Oracle(questions)
    answers = evaluate_language_model(oracle, questions, path, max_characters=7)
    assert [text for texts, _ in oracle.calls for text in texts] == [prompt.prompt for prompt in questions[4:]]
    assert {characters for _, characters in oracle.calls} == {7}
    assert [answer.correct for answer in answers] == [True, False, True] * 4
    third = Oracle(questions)
    assert evaluate_language_model(third, questions, path) == answers
    assert third.calls == []


def test_a_run_that_was_killed_in_the_middle_of_a_line_continues(questions, tmp_path):
    path = tmp_path / "answers.jsonl"

    class Stops(Oracle):
        def __call__(self, texts, characters):
            if len(self.calls) == 2:
                raise KeyboardInterrupt
            return super().__call__(texts, characters)

    with pytest.raises(KeyboardInterrupt):
        evaluate_language_model(Stops(questions), questions, path, batch_size=4)
    assert len(read_answers(path)[1]) == 8
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    assert len(read_answers(path)[1]) == 7
    oracle = Oracle(questions)
    answers = evaluate_language_model(oracle, questions, path)
    assert sum(len(texts) for texts, _ in oracle.calls) == 5
    assert len(read_answers(path)[1]) == len(answers) == 12
    path.write_bytes(b'{"for')  # killed while it wrote the first line
    assert evaluate_language_model(Oracle(questions), questions, path) == answers


def test_files_that_do_not_fit_are_refused(questions, tmp_path):
    path = tmp_path / "answers.jsonl"
    evaluate_language_model(Oracle(questions), questions, path)
    other = Oracle(questions)
    other.name = "another"
    with pytest.raises(EvaluationError, match="'oracle', not of 'another'"):
        evaluate_language_model(other, questions, path)
    with pytest.raises(EvaluationError, match=r"prompt 0 of bfs.*seed 3"):
        evaluate_language_model(Oracle(questions), questions, path, examples=few_shot_examples(1))
    lines = path.read_text().splitlines()
    deep = "[" * 100_000
    for damage in (["{}", *lines[1:]], [lines[0], '{"algorithm": "bfs"}'], ["nonsense", *lines[1:]], [deep, *lines]):
        path.write_text("\n".join(damage) + "\n")
        with pytest.raises(EvaluationError, match="is no file of answers"):
            read_answers(path)
    path.write_text(json.dumps({"format": 99, "model": "oracle"}) + "\n")
    with pytest.raises(EvaluationError, match="has format 99, this version reads 1"):
        evaluate_language_model(Oracle(questions), questions, path)
    for text in ("notes", "notes\nof a user", '{"formal'):
        path.write_text(text)
        with pytest.raises(EvaluationError, match="is no file of answers"):
            evaluate_language_model(Oracle(questions), questions, path)
        assert path.read_text() == text
    with pytest.raises(EvaluationError, match="there is no file of answers"):
        read_answers(tmp_path / "absent.jsonl")
    with pytest.raises(EvaluationError, match="no prompt to answer"):
        evaluate_language_model(Oracle([]), [], path)


def test_a_file_is_written_by_one_process_at_a_time(questions, tmp_path):
    path = tmp_path / "answers.jsonl"

    class Twice(Oracle):
        def __call__(self, texts, characters):
            with pytest.raises(EvaluationError, match="in use by another process"):
                evaluate_language_model(Oracle(questions), questions, path)
            return super().__call__(texts, characters)

    assert len(evaluate_language_model(Twice(questions), questions, path)) == 12


def test_what_cannot_be_written_is_told(questions, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="a file lies where a folder should be"):
        evaluate_language_model(Oracle(questions), questions, tmp_path / "file" / "answers.jsonl")


def test_a_model_must_answer_every_prompt(questions, tmp_path):
    class Silent:
        name = "silent"

        def __call__(self, texts, characters):
            return []

    with pytest.raises(EvaluationError, match="silent returned 0 texts for 8 prompts"):
        evaluate_language_model(Silent(), questions, tmp_path / "answers.jsonl")


def test_few_shot_examples_stand_before_the_prompt(questions, tmp_path):
    examples = few_shot_examples(2)
    first, second = prompts("bfs", 4, 2, 0)
    text = question_text(questions[0], examples(questions[0]))
    assert text == first.prompt + first.reference + second.prompt + second.reference + questions[0].prompt
    assert examples(questions[-1])[0].size == 5
    seen = []

    class Model:
        name = "model"

        def __call__(self, texts, characters):
            seen.extend(texts)
            return [""] * len(texts)

    evaluate_language_model(Model(), questions[:1], tmp_path / "answers.jsonl", examples=examples)
    assert seen == [text]
    (cut,) = few_shot_examples(1, decimals=2)(next(prompts("insertion_sort", 4, 1, 3, decimals=2)))
    assert all(len(word) <= 4 for word in cut.prompt.split("[")[1].split("]")[0].split())


def test_splits_of_the_dataset_are_questions_too(tmp_path):
    splits = graphbench.Loader("clrs_text/bfs", root=tmp_path, limit=80, workers=1).load(())
    made = dataset_prompts(splits.test)
    assert len(made) == 80
    for prompt in (made[0], made[41], made[79]):
        (*_, drawn) = prompts("bfs", prompt.size, prompt.index + 1, prompt.seed)
        assert drawn == prompt
    assert {prompt.seed for prompt in made} == {3, 14, 35} and made[0].size == 4
    oracle = Oracle(made)
    answers = evaluate_language_model(oracle, splits.test[[41, 2]], tmp_path / "answers.jsonl")
    assert [answer.key for answer in answers] == [
        ("bfs", prompt.size, prompt.seed, prompt.index, True) for prompt in (made[41], made[2])
    ]
    changed = graphbench.Loader("clrs_text/bfs", pre_transform=lambda data: data, root=tmp_path, limit=3, workers=1)
    with pytest.raises(EvaluationError, match=r"pre_transform.*clrs_text/bfs"):
        dataset_prompts(changed.load(())["val"])


def test_splits_without_prompts_are_refused(tmp_path):
    for name in ("clrs/bfs", "algoreas/mst_easy"):
        split = graphbench.Loader(name, root=tmp_path, limit=2, workers=1).load(())["val"]
        with pytest.raises(EvaluationError, match=f"{name} has no prompts of algorithms"):
            dataset_prompts(split)


def answer(algorithm, size, seed, correct, use_hints=True):
    return Answer(algorithm, size, seed, 0, use_hints, "", "", correct)


def test_scores_are_averaged_over_seeds():
    answers = [answer("bfs", 4, 3, right) for right in (True, True, True, False)]
    answers += [answer("bfs", 4, 14, right) for right in (True, False)]
    answers += [answer("bfs", 5, 3, True), answer("activity_selector", 4, 3, False)]
    greedy, small, large = size_scores(answers)
    assert (greedy.algorithm, greedy.mean, greedy.std, greedy.count) == ("activity_selector", 0.0, None, 1)
    assert (small.size, small.mean, small.count) == (4, 0.625, 6)
    assert small.std == pytest.approx(0.125 * 2**0.5)
    assert (large.size, large.mean) == (5, 1.0)
    with pytest.raises(EvaluationError, match="with and without a trace"):
        size_scores([*answers, answer("bfs", 4, 3, True, use_hints=False)])


def test_the_figure_shows_models_and_the_sizes_trained_on():
    scores = size_scores([answer("bfs", size, seed, size < 8) for size in range(4, 13) for seed in (3, 14)])
    figure = accuracy_figure(
        "bfs", {"ours": scores, "theirs": scores[:3], "absent": []}, paper_protocol().sizes_of("bfs").train
    )
    (axes,) = figure.axes
    lines = {line.get_label(): line for line in axes.lines}
    assert list(lines["size trained on"].get_xdata()) == [4, 5, 10, 11, 12]
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert sorted(labels) == ["ours", "size trained on", "theirs"]
    ours = axes.containers[0].lines[0]
    assert list(ours.get_xdata()) == list(range(4, 13))
    assert list(ours.get_ydata()) == [1.0] * 4 + [0.0] * 5
    with pytest.raises(EvaluationError, match="no model has a score of 'dfs'"):
        accuracy_figure("dfs", {"ours": scores})


LETTERS = "\n" + "".join(chr(code) for code in range(32, 127))


@pytest.fixture(scope="module")
def tiny():
    """A causal model with random weights, and a tokenizer of characters."""
    transformers = pytest.importorskip("transformers")
    from tokenizers import Regex, Tokenizer
    from tokenizers.decoders import Fuse
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Split

    vocabulary = {letter: number for number, letter in enumerate([*LETTERS, "<end>", "<unknown>"])}
    characters = Tokenizer(WordLevel(vocabulary, unk_token="<unknown>"))
    characters.pre_tokenizer = Split(Regex(r"[\s\S]"), "isolated")
    characters.decoder = Fuse()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=characters, eos_token="<end>")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(vocabulary), hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=256, bos_token_id=None, eos_token_id=vocabulary["<end>"],
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config), tokenizer


@pytest.fixture
def causal(tiny):
    return CausalModel(*tiny, name="tiny", stop=None)


def greedy(model, tokenizer, text, count):
    ids = tokenizer(text)["input_ids"]
    for _ in range(count):
        with torch.inference_mode():
            ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
    return tokenizer.decode(ids[-count:])


def test_batches_of_texts_of_any_length_are_completed_greedily(tiny, causal):
    texts = ["bfs:\ns: 3", "minimum:\nkey: [0.5 0.25 0.125]\nmin:\n", "a"]
    expected = [greedy(*tiny, text, 12) for text in texts]
    assert len(set(expected)) == 3
    assert causal(texts, 12) == expected
    assert [causal([text], 12)[0] for text in texts] == expected


def test_generation_ends_at_the_stop_text(tiny, causal):
    (text,) = causal(["bfs:\n"], 40)
    causal.stop = text[6:8]
    before = text[: text.index(causal.stop)]
    steps = []
    own = causal.model.forward

    def counted(*args, **kwargs):
        steps.append(1)
        return own(*args, **kwargs)

    causal.model.forward = counted
    try:
        assert causal(["bfs:\n"], 40) == [before]
    finally:
        causal.model.forward = own
    assert len(steps) == len(before) + 2


def test_texts_that_do_not_fit_the_context_are_told(causal):
    assert causal.context == 256
    assert len(causal(["x" * 250], 40)[0]) == 6
    with pytest.raises(EvaluationError, match=r"256 tokens.*context of tiny has 256"):
        causal(["x" * 256], 40)


def test_a_model_of_transformers_is_evaluated_and_saved_models_are_found(tiny, tmp_path, questions):
    model, tokenizer = tiny
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    found = CausalModel.from_pretrained(str(tmp_path / "model"))
    assert found.name == str(tmp_path / "model")
    answers = evaluate_language_model(found, questions[:2], tmp_path / "answers.jsonl", max_characters=4)
    assert [answer.correct for answer in answers] == [False, False]
    with pytest.raises(EvaluationError, match="cannot load the model"):
        CausalModel.from_pretrained(str(tmp_path / "absent"))


def test_missing_transformers_are_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingDependency, match=r"pip install 'graphbench\[text\]'"):
        CausalModel.from_pretrained("any")
