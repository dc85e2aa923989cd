"""Roles of special tokens and chat templates: options of training and export, and defaults by name."""

import inspect
import json
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from helpers import untouched

from batchbpe import Model, Tokenizer, train
from batchbpe.errors import ArgumentError, DataError
from batchbpe.formats import FORMATS, roles
from batchbpe.formats.carried import ROLES
from batchbpe.formats.roles import RECOGNIZED, RoleOptions, by_name
from batchbpe.options import described

TEXT = "the theory of the thing and the other thing"
TEMPLATE = "{% for m in messages %}{{ m.content }}{% if loop.last %}{% break %}{% endif %}{% endfor %}"


def tokenizer(*special_tokens: str, **options: Any) -> Tokenizer:
    return Tokenizer.train(TEXT, 270, special_tokens=special_tokens, **options)


def config_in(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("special_tokens", "expected"),
    [
        ("", ""),
        ("<a>", ""),
        ("<|endoftext|>", "bos <|endoftext|> eos <|endoftext|>"),
        ("<s> </s> <pad> <unk> <mask>", "bos <s> eos </s> pad <pad> unk <unk> mask <mask>"),
        ("<|begin_of_text|> <|end_of_text|> <|endoftext|>", "bos <|begin_of_text|> eos <|end_of_text|>"),
        ("<|startoftext|> <|endoftext|>", "bos <|startoftext|> eos <|endoftext|>"),
        ("<bos> <eos> <|pad|>", "bos <bos> eos <eos> pad <|pad|>"),
        ("<|im_start|> <|im_end|>", "bos <|im_start|> eos <|im_end|>"),
        ("<|im_start|> <|im_end|> <|endoftext|>", "bos <|endoftext|> eos <|endoftext|>"),
        ("[PAD] [CLS] [SEP] [MASK] [UNK]", "pad [PAD] unk [UNK] mask [MASK] cls [CLS] sep [SEP]"),
        ("[BOS] [EOS]", "bos [BOS] eos [EOS]"),
        (
            "<｜begin▁of▁sentence｜> <｜end▁of▁sentence｜> <｜▁pad▁｜>",
            "bos <｜begin▁of▁sentence｜> eos <｜end▁of▁sentence｜> pad <｜▁pad▁｜>",
        ),
    ],
)
def test_roles_by_name(special_tokens: str, expected: str, tmp_path: Path) -> None:
    trained = tokenizer(*special_tokens.split())
    words = expected.split()
    assert trained.roles == dict(zip(words[::2], words[1::2], strict=True))
    trained.export(tmp_path / "folder", "transformers")
    config = config_in(tmp_path / "folder")
    assert {name.removesuffix("_token"): config[name] for name in ROLES if name in config} == trained.roles
    assert Tokenizer.from_file(tmp_path / "folder").roles == trained.roles
    trained.export(tmp_path / "folder", "transformers")  # replaces its own defaults without a warning


def test_added_tokens_get_no_roles() -> None:
    model = Model(r"\w+", {}, added_tokens={"<s>": 256}, special_tokens={"</s>": 257})
    assert Tokenizer(model).roles == {"eos": "</s>"}


def test_every_role_is_recognized() -> None:
    assert sorted(f"{role}_token" for role in RECOGNIZED) == sorted(ROLES)
    assert [*RECOGNIZED, "chat_template"] == [option.name for option in fields(RoleOptions)]
    for role, names in RECOGNIZED.items():
        for name in names:
            assert by_name([name])[role] == name


@pytest.mark.parametrize("function", [train, Tokenizer.train, Tokenizer.export])
def test_options_are_spelled_out(function: Callable[..., Any]) -> None:
    parameters = inspect.signature(function).parameters
    for option in fields(RoleOptions):
        assert described(option) in (function.__doc__ or "")
        assert (parameters[option.name].default, parameters[option.name].annotation) == (option.default, option.type)


def test_options_of_training_and_export(tmp_path: Path) -> None:
    special_tokens = ["<s>", "</s>", "<p>", "<|endoftext|>"]
    given = {"bos": "<|endoftext|>", "pad": "<p>", "chat_template": TEMPLATE}
    expected = {"bos": "<|endoftext|>", "eos": "</s>", "pad": "<p>"}
    tokenizer(*special_tokens).export(tmp_path / "exported", "transformers", **given)  # type: ignore[arg-type]
    trained = tokenizer(*special_tokens, **given)
    trained.export(tmp_path / "trained", "transformers")
    trained.save(tmp_path / "saved")
    tokenizer(*special_tokens).export(tmp_path / "native", "batchbpe", **given)  # type: ignore[arg-type]
    for path in ("exported", "trained", "saved.model", "native"):
        loaded = Tokenizer.from_file(tmp_path / path)
        assert (loaded.roles, loaded.model.carried["chat_template"]) == (expected, TEMPLATE), path
    assert config_in(tmp_path / "exported") == config_in(tmp_path / "trained")
    transformers = pytest.importorskip("transformers")
    auto = transformers.AutoTokenizer.from_pretrained(tmp_path / "exported")
    assert auto.special_tokens_map == {f"{role}_token": name for role, name in expected.items()}
    assert auto.chat_template == TEMPLATE
    (tmp_path / "chat.jinja").write_bytes(TEMPLATE.replace("{%", "\r\né{%", 1).encode())
    from_file = tokenizer(chat_template=tmp_path / "chat.jinja").model
    assert from_file.carried == {"chat_template": "\r\né" + TEMPLATE}
    assert trained.model == tokenizer(*special_tokens).model  # they do not change how text is encoded
    with_phrases = Tokenizer.train([TEXT], 270, special_tokens=special_tokens, phrases=1, **given)  # type: ignore[arg-type]
    assert with_phrases.roles == expected


def test_roles_of_a_base_are_kept() -> None:
    base = tokenizer("<s>", "</s>", eos="<s>", chat_template=TEMPLATE)
    further = Tokenizer.train(TEXT, 280, base=base, special_tokens=["<pad>"], bos="</s>")
    assert further.roles == {"bos": "</s>", "eos": "<s>"}  # no default is added to roles that are carried
    assert further.model.carried["chat_template"] == TEMPLATE
    assert Tokenizer.train(TEXT, 280, base=base, special_tokens=["<pad>"], pad="<pad>").roles["pad"] == "<pad>"
    assert Tokenizer.train(TEXT, 280, like=base, eos="</s>").roles == {"bos": "<s>", "eos": "</s>"}


def test_a_template_replaces_that_in_the_configuration(tmp_path: Path) -> None:
    config = {"chat_template": "{{ old }}", "model_max_length": 9}
    model = replace(tokenizer("<s>").model, carried={"tokenizer_config": config})
    Tokenizer(model).export(tmp_path / "folder", "transformers", chat_template=TEMPLATE)
    assert config_in(tmp_path / "folder").get("chat_template") is None
    assert config_in(tmp_path / "folder")["model_max_length"] == 9
    assert (tmp_path / "folder" / "chat_template.jinja").read_text() == TEMPLATE
    assert model.carried["tokenizer_config"] == config


def test_roles_must_be_special_tokens(tmp_path: Path) -> None:
    problem = r"eos must be a special token, got '</s>'; use <s>, or train with special_tokens$"
    with pytest.raises(ArgumentError, match=problem):
        train(untouched(), 270, special_tokens=["<s>"], eos="</s>")  # before anything is read
    with pytest.raises(ArgumentError, match=problem):
        tokenizer("<s>").export(tmp_path / "folder", "transformers", eos="</s>")
    with pytest.raises(ArgumentError, match=r"pad must be a special token, got 'a'; train with special_tokens$"):
        train(untouched(), 270, pad="a")
    with pytest.raises(TypeError, match="bos must be a string, got 3"):
        train(untouched(), 270, bos=3)  # type: ignore[arg-type]
    base = Model(r"\w+", {}, added_tokens={"<tool>": 256}, special_tokens={"<s>": 257})
    with pytest.raises(ArgumentError, match="mask must be a special token, got '<tool>'; use <s>, or"):
        train(untouched(), 270, base=base, mask="<tool>")
    assert train(["ab"], 259, base=base, mask="<s>").carried["tokenizer_config"]["mask_token"] == "<s>"
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("format", [name for name in FORMATS if not FORMATS[name].stores_roles])
def test_formats_without_roles(format: Any, tmp_path: Path) -> None:
    problem = f'cannot be stored in the format {format}, got .*; use format="transformers" or format="batchbpe"'
    with pytest.raises(ArgumentError, match=f"^bos {problem}"):
        tokenizer("<s>").export(tmp_path / "a", format, bos="<s>")
    with pytest.raises(ArgumentError, match=f"^chat_template {problem}"):
        tokenizer("<s>").export(tmp_path / "a", format, chat_template=TEMPLATE)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("{% if %}", "must be the text of a Jinja template, got '{% if %}'; line 1: "),
        ("a\n{{ x }\n", "; line 2: "),
        ("{% for x in y %}", "line 1: Unexpected end of template"),
        ("{{ x | frobnicate }}", "line 1: No filter named 'frobnicate'"),
        ("{% generation %}", "line 1: Unexpected end of template"),
        ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "must be the text of a Jinja template"),
    ],
)
def test_templates_that_do_not_parse(template: str, problem: str, tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    with pytest.raises(ArgumentError, match=problem):
        train(untouched(), 270, chat_template=template)
    with pytest.raises(ArgumentError, match=problem):
        tokenizer().export(tmp_path / "folder", "transformers", chat_template=template)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    "template",
    [
        TEMPLATE,
        "{% generation %}{{ x }}{% endgeneration %}",
        "{%- for x in y if x is not none -%}{% continue %}{%- endfor -%}{{ strftime_now('%Y') }}",
        "{{ raise_exception('no') }}{% set n = namespace(a=1) %}{% set n.a = dict(b=2) %}{{ n.a | tojson(indent=1) }}",
        "{% macro f(x) %}{{ x.split('a')[-1] }}{% endmacro %}{{ f(messages[0].content) }}",
    ],
)
def test_templates_that_transformers_accepts(template: str) -> None:
    pytest.importorskip("jinja2")
    chat = pytest.importorskip("transformers.utils.chat_template_utils")
    chat._compile_jinja_template(template)
    assert RoleOptions(chat_template=template).chat_template == template


def test_what_is_not_a_template(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"must be the text of a Jinja template, got 'a.jinja'; for a file, pass P"):
        train(untouched(), 270, chat_template="a.jinja")
    with pytest.raises(FileNotFoundError, match=r"cannot read .*a\.jinja: no such file"):
        train(untouched(), 270, chat_template=tmp_path / "a.jinja")
    (tmp_path / "a.jinja").write_bytes(b"{{ \xff }}")
    with pytest.raises(DataError, match=r"a\.jinja: .*utf-8"):
        train(untouched(), 270, chat_template=tmp_path / "a.jinja")
    with pytest.raises(TypeError, match="chat_template must be a string or a path object, got 3"):
        train(untouched(), 270, chat_template=3)  # type: ignore[arg-type]
    (tmp_path / "a.jinja").write_text("text")
    with pytest.raises(ArgumentError, match=r"must be a file with a Jinja template, got '.*a\.jinja'$"):
        train(untouched(), 270, chat_template=tmp_path / "a.jinja")


def test_jinja2_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert roles.RoleOptions(chat_template="{% if %}").chat_template == "{% if %}"


def test_the_documentation_lists_the_names() -> None:
    page = (Path(__file__).parents[1] / "docs" / "retrain.md").read_text(encoding="utf-8")
    for role, names in RECOGNIZED.items():
        assert f"- {role}: {', '.join(f'`{name}`' for name in names)}" in " ".join(page.split())
