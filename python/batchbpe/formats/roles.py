"""Roles of special tokens (bos, eos, pad, …) and the chat template: what transformers reads from tokenizer_config.json.

`Model.carried` stores them. A model without roles gets them by the names of its special tokens when it is exported.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar

from ..arguments import check_string
from ..errors import ArgumentError, ArgumentTypeError, Message, Setting, listed
from ..model import Model
from ..options import HelpGroup, option
from .carried import END, ROLES, content_of
from .file_errors import locate_errors

RECOGNIZED: Mapping[str, tuple[str, ...]] = {
    "bos": (
        *("<|begin_of_text|>", "<｜begin▁of▁sentence｜>", "<beginning_of_sentence>", "<|startoftext|>", "<|bos|>"),
        *("<bos>", "<s>", "[BOS]", END, "<|im_start|>"),
    ),
    "eos": (
        *("<|end_of_text|>", "<｜end▁of▁sentence｜>", "<end_of_sentence>", "<|eos|>", "<eos>", "</s>", "[EOS]", END),
        "<|im_end|>",
    ),
    "pad": ("<|pad|>", "<pad>", "[PAD]", "<｜▁pad▁｜>", "<|finetune_right_pad_id|>"),
    "unk": ("<|unk|>", "<unk>", "[UNK]"),
    "mask": ("<|mask|>", "<mask>", "[MASK]"),
    "cls": ("<|cls|>", "<cls>", "[CLS]"),
    "sep": ("<|sep|>", "<sep>", "[SEP]"),
}
"""The names that get each role by default. The first one that is a special token gets it.

Tokens that begin and end a text come before <|endoftext|>, which can do both, and before those of a turn in a chat.
"""
LISTED = "additional_special_tokens"
"""The setting that lists special tokens without a role, which transformers does not always take from tokenizer.json."""
_LISTED_SINCE_5 = "extra_special_tokens"
_CONFIG = {"clean_up_tokenization_spaces": False, "model_max_length": int(1e30)}
"""The settings of a model that carries none."""


@dataclass(frozen=True, kw_only=True)
class RoleOptions:
    """The roles and the chat template that are given explicitly.

    >>> RoleOptions(chat_template="chat.jinja")
    Traceback (most recent call last):
    ...
    batchbpe.errors.ArgumentError: chat_template must be the text of a Jinja template, got 'chat.jinja'; for a file, pass Path('chat.jinja')
    """  # noqa: E501  the last line is an error message

    GROUP: ClassVar[HelpGroup] = "Special tokens"

    bos: str | None = option(None, "Special token at the beginning of a text.")
    eos: str | None = option(None, "Special token at the end of a text.")
    pad: str | None = option(None, "Special token that fills up the shorter texts of a batch.")
    unk: str | None = option(None, "Special token for unknown text.")
    mask: str | None = option(None, "Special token for hidden text.")
    cls: str | None = option(None, "Special token for the class of a text.")
    sep: str | None = option(None, "Special token between two texts.")
    chat_template: str | os.PathLike[str] | None = option(None, "Jinja template that formats a conversation.")

    def __post_init__(self) -> None:
        """Check the types, and read the chat template if it is a file."""
        for role, name in self.roles.items():
            check_string(role, name)
        if self.chat_template is not None:
            object.__setattr__(self, "chat_template", _template(self.chat_template))

    @property
    def roles(self) -> dict[str, str]:
        """The roles that are given.

        >>> RoleOptions(eos="</s>").roles
        {'eos': '</s>'}
        """
        return {role: name for role in RECOGNIZED if (name := getattr(self, role)) is not None}

    def check(self, special_tokens: Collection[str]) -> None:
        """Raise if a role is given to anything other than a special token.

        >>> RoleOptions(eos="</s>").check(["<s>"])
        Traceback (most recent call last):
        ...
        batchbpe.errors.ArgumentError: eos must be a special token, got '</s>'; use <s>, or train with special_tokens
        """
        for role, name in self.roles.items():
            if name not in special_tokens:
                known = f"use {listed(special_tokens)}, or " if special_tokens else ""
                remedy: Message = (f"{known}train with ", Setting("special_tokens"))
                raise ArgumentError(role, name, "must be a special token", remedy=remedy)

    def refuse(self, format: str) -> None:
        """Raise if anything is given, because a format cannot store it."""
        for each in fields(self):
            value = getattr(self, each.name)
            if value is not None:
                remedy: Message = ("use ", Setting("format", "transformers"), " or ", Setting("format", "batchbpe"))
                raise ArgumentError(each.name, value, f"cannot be stored in the format {format}", remedy=remedy)


def _template(given: str | os.PathLike[str]) -> str:
    """Return the text of a chat template. Raise if it is not one."""
    text, expected, remedy = given, "must be the text of a Jinja template", f"for a file, pass Path({given!r})"
    if isinstance(given, os.PathLike):
        with locate_errors(given):
            text, expected, remedy = Path(given).read_bytes().decode(), "must be a file with a Jinja template", ""
    if not isinstance(text, str):
        raise ArgumentTypeError("chat_template", given, "must be a string or a path object")
    if "{{" not in text and "{%" not in text:
        raise ArgumentError("chat_template", str(given), expected, remedy=remedy)
    if problem := _problem(text):
        raise ArgumentError("chat_template", str(given), expected, remedy=problem)
    return text


def _problem(template: str) -> str:
    """Return why transformers cannot compile a template, or nothing if it can or if jinja2 is not installed."""
    try:
        import jinja2
        from jinja2 import ext, sandbox
    except ImportError:
        return ""

    def parse(_: Any, parser: Any) -> Any:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)

    # transformers has this block, which marks what a model wrote.
    generation = type("Generation", (ext.Extension,), {"tags": {"generation"}, "parse": parse})
    environment = sandbox.ImmutableSandboxedEnvironment(extensions=[generation, ext.loopcontrols])
    try:
        environment.compile(template)
    except jinja2.TemplateSyntaxError as error:
        return f"line {error.lineno}: {error.message}"
    except (RecursionError, SyntaxError, ValueError) as error:  # of Python, about what Jinja made of the template
        return str(error)
    return ""


def by_name(special_tokens: Collection[str]) -> dict[str, str]:
    """Return the roles that special tokens get by their names.

    >>> by_name(["<|endoftext|>", "<pad>"])
    {'bos': '<|endoftext|>', 'eos': '<|endoftext|>', 'pad': '<pad>'}
    """
    found = {role: next((name for name in names if name in special_tokens), "") for role, names in RECOGNIZED.items()}
    return {role: name for role, name in found.items() if name}


def config_of(model: Model) -> dict[str, Any]:
    """Return the settings for tokenizer_config.json: those that a model carries, with roles by name if it has none.

    A model without settings gets a list of the special tokens that have no role.

    >>> config = config_of(Model(r"\\w+", {}, special_tokens={"</s>": 256, "<x>": 257}))
    >>> config["eos_token"], config[LISTED]
    ('</s>', ['<x>'])
    """
    config = dict(model.carried.get("tokenizer_config", _CONFIG))
    if not any(config.get(name) for name in ROLES):
        roles = by_name(model.special_tokens)
        config |= {f"{role}_token": name for role, name in roles.items()}
        others = [name for name in model.special_tokens if name not in roles.values()]
        if others and "tokenizer_config" not in model.carried:
            config[LISTED] = others
    return config


def with_listed(model: Model, new: Iterable[str]) -> Model:
    """Return a model whose settings, if it carries any, list new special tokens.

    >>> model = Model(r"\\w+", {}, special_tokens={"<x>": 256}, carried={"tokenizer_config": {"pad_token": "<p>"}})
    >>> with_listed(model, ["<x>"]).carried["tokenizer_config"]
    {'pad_token': '<p>', 'additional_special_tokens': ['<x>']}
    """
    config = model.carried.get("tokenizer_config")
    if config is None or isinstance(config.get(_LISTED_SINCE_5), Mapping):  # the latter names each of them
        return model
    key = _LISTED_SINCE_5 if _LISTED_SINCE_5 in config else LISTED
    listed = [*(config.get(key) or ())]
    listed += [name for name in new if name not in map(content_of, listed)]
    return replace(model, carried={**model.carried, "tokenizer_config": {**config, key: listed} if listed else config})


def roles_of(model: Model) -> dict[str, str]:
    """Return the roles of a model as an export writes them.

    >>> roles_of(Model(r"\\w+", {}, carried={"tokenizer_config": {"pad_token": {"content": "!"}}}))
    {'pad': '!'}
    """
    config = config_of(model)
    names = {role: content_of(config.get(f"{role}_token")) for role in RECOGNIZED}
    return {role: str(name) for role, name in names.items() if name}


def with_roles(model: Model, options: RoleOptions) -> Model:
    """Return a model that carries roles and a chat template. Roles that are not given do not change.

    >>> model = Model(r"\\w+", {}, special_tokens={"<s>": 256, "</s>": 257})
    >>> roles_of(with_roles(model, RoleOptions(bos="</s>")))
    {'bos': '</s>', 'eos': '</s>'}
    """
    carried = dict(model.carried)
    if options.roles:
        options.check(model.special_tokens)
        carried["tokenizer_config"] = config_of(model) | {f"{role}_token": name for role, name in options.roles.items()}
    if options.chat_template is not None:
        carried["chat_template"] = options.chat_template
        if "tokenizer_config" in carried:  # an older file has its template there
            config = carried["tokenizer_config"].items()
            carried["tokenizer_config"] = {name: value for name, value in config if name != "chat_template"}
    return replace(model, carried=carried)
