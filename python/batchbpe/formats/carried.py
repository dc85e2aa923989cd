"""What Hugging Face files contain besides a `Model`: it is carried along, and exports write it back.

`Model.carried` has "post_processor", "decoder", "padding" and "truncation" of a tokenizer.json, "tokenizer_config" (the
content of tokenizer_config.json) and "chat_template" (that of chat_template.jinja); of a tekken.json, it has "tekken".
These parts do not change how a text itself is encoded. A format that cannot store them names them in a warning.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from ..errors import DataError, Setting, parse_json, short, warn
from ..model import Model
from .byte_level import from_byte_level
from .file_errors import locate_errors

CONFIG = "tokenizer_config.json"
TEMPLATE = "chat_template.jinja"
END = "<|endoftext|>"
"""Gets the roles bos and eos if no other name does."""
ROLES = ("bos_token", "eos_token", "pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
_SWITCHES = ("add_bos_token", "add_eos_token", "add_prefix_space", "clean_up_tokenization_spaces")
_OBJECT_SETTINGS = ("model_max_length", "padding_side", "truncation_side", "model_input_names", "split_special_tokens")
_NO_LIMIT = 1e20
"""transformers writes larger values of `model_max_length` if there is no limit."""


def of_folder(folder: Path) -> dict[str, Any]:
    """Return the parts in the files next to a tokenizer.json."""
    parts: dict[str, Any] = {}
    for name, key in ((CONFIG, "tokenizer_config"), (TEMPLATE, "chat_template")):
        path = folder / name
        if path.is_file():
            with locate_errors(path):
                content = path.read_bytes()
                parts[key] = (
                    parse_json(content, f"not a valid {name}: ") if key != "chat_template" else content.decode()
                )
    with locate_errors(folder / CONFIG):
        if not isinstance(config := parts.get("tokenizer_config", {}), dict):
            raise DataError(f"expected an object, got {short(config)}")
        check_config(config)
    return parts


def of_object(tokenizer: Any) -> dict[str, Any]:
    """Return the settings of a transformers tokenizer as parts."""
    names = (*_OBJECT_SETTINGS, *_SWITCHES, *ROLES, *getattr(tokenizer, "SPECIAL_TOKENS_ATTRIBUTES", ()))
    values = {name: getattr(tokenizer, name, None) for name in names}
    config: dict[str, Any] = {
        name: value for name, value in values.items() if isinstance(value, str | int | float | list)
    }
    for name in ("extra_special_tokens", "additional_special_tokens"):
        if isinstance(tokens := getattr(tokenizer, name, None), list) and tokens:
            config["additional_special_tokens"] = [*map(str, tokens)]
    template = getattr(tokenizer, "chat_template", None)
    if isinstance(template, dict):
        config["chat_template"] = [{"name": name, "template": text} for name, text in template.items()]
    return {"tokenizer_config": config} | ({"chat_template": template} if isinstance(template, str) else {})


def check_carried(model: Model) -> None:
    """Raise if a part that a model carries is not what Hugging Face's library reads, or names an unknown token.

    >>> roberta = {"type": "RobertaProcessing", "sep": ["</s>", 299], "cls": ["<s>", 0]}
    >>> check_carried(Model(r"\\w+", {}, special_tokens={"<s>": 256}, carried={"post_processor": roberta}))
    Traceback (most recent call last):
    ...
    batchbpe.errors.DataError: post_processor: RobertaProcessing names the token '</s>' with the id 299, which does not exist
    """  # noqa: E501  the last line is an error message
    for name, (container, types) in _TYPES.items():
        part = model.carried.get(name)
        for each in flat(part, container) if part is not None else ():
            if not isinstance(each, Mapping) or each.get("type") not in types:
                reason = f"expected an object of one of the types {', '.join(types)}, got {short(each)}"
                raise DataError(reason, where=name)
    for name in ("padding", "truncation", "tokenizer_config"):
        if not isinstance(model.carried.get(name, {}), Mapping):
            raise DataError(f"expected an object, got {short(model.carried[name])}", where=name)
    if not isinstance(model.carried.get("chat_template", ""), str):
        raise DataError(f"expected a string, got {short(model.carried['chat_template'])}", where="chat_template")
    check_config(model.carried.get("tokenizer_config", {}))
    found = {*model.found_tokens.values()}
    for kind, name, token in _named_tokens(model.carried.get("post_processor")):
        if token not in found and token not in model.vocab:
            reason = f"{kind} names the token {short(name)} with the id {short(token)}, which does not exist"
            raise DataError(reason, where="post_processor")


_TYPES = {
    "post_processor": (
        "processors",
        ("ByteLevel", "TemplateProcessing", "RobertaProcessing", "BertProcessing"),
    ),
    "decoder": (
        "decoders",
        ("ByteLevel", "Fuse", "Strip", "Replace", "ByteFallback", "Metaspace", "WordPiece", "BPEDecoder", "CTC"),
    ),
}


def flat(part: Any, container: str) -> Iterator[Any]:
    """Yield the parts of a sequence, which may contain others, or the part itself if it is not a sequence."""
    if isinstance(part, Mapping) and part.get("type") == "Sequence" and isinstance(part.get(container), list):
        for each in part[container]:
            yield from flat(each, container)
    else:
        yield part


def check_config(config: Mapping[str, Any]) -> None:
    """Raise if the special tokens in a tokenizer_config.json are not what transformers reads.

    >>> check_config({"bos_token": 3})
    Traceback (most recent call last):
    ...
    batchbpe.errors.DataError: bos_token: expected a special token, got 3
    """
    decoder = config.get("added_tokens_decoder")
    for token, entry in (decoder if isinstance(decoder, Mapping) else {}).items():
        is_token = isinstance(entry, Mapping) and isinstance(entry.get("content"), str)
        if not is_token or not str(token).isdecimal():
            raise DataError(f"expected an added token, got {short({token: entry})}", where="added_tokens_decoder")
    if decoder is not None and not isinstance(decoder, Mapping):
        raise DataError(f"expected an object, got {short(decoder)}", where="added_tokens_decoder")
    roles = {name: [config.get(name)] for name in ROLES}
    for name in ("additional_special_tokens", "extra_special_tokens"):
        tokens = config.get(name) or []
        if not isinstance(tokens, Mapping | list):
            raise DataError(f"expected an array or an object, got {short(tokens)}", where=name)
        roles[name] = [*(tokens.values() if isinstance(tokens, Mapping) else tokens)]
    for name, tokens in roles.items():
        for token in tokens:
            if token is not None and not isinstance(content_of(token), str):
                raise DataError(f"expected a special token, got {short(token)}", where=name)


def content_of(token: Any) -> Any:
    """Return the name of a token in a tokenizer_config.json: a string, or an object that has it as its content.

    >>> content_of("<s>"), content_of({"content": "<s>", "lstrip": True})
    ('<s>', '<s>')
    """
    return token.get("content") if isinstance(token, Mapping) else token


def _named_tokens(part: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the type of the post-processor, the name and the id of each token that it adds."""
    try:
        kind = part["type"] if part is not None else None
        if kind == "Sequence":
            for each in part["processors"]:
                yield from _named_tokens(each)
        elif kind in ("RobertaProcessing", "BertProcessing"):
            for name, token in (part["sep"], part["cls"]):
                yield kind, name, token
        elif kind == "TemplateProcessing":
            known = part["special_tokens"]
            for piece in (*part["single"], *part["pair"]):
                if "SpecialToken" in piece:
                    name = piece["SpecialToken"]["id"]
                    if name not in known:
                        reason = f"the template names the token {short(name)}, which special_tokens does not list"
                        raise DataError(reason, where="post_processor")
                    for token in known[name]["ids"]:
                        yield kind, name, token
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"expected a post-processor, got {short(part)}", where="post_processor") from None


def renumbered(carried: Mapping[str, Any], model: Model) -> dict[str, Any]:
    """Return parts that are carried by one model for another: with its ids for the tokens that they name.

    Settings of a tekken.json are left out: they are about ids that special tokens have only there.

    >>> padding = {"pad_token": "<pad>", "pad_id": 3}
    >>> renumbered({"padding": padding}, Model(r"\\w+", {}, special_tokens={"<pad>": 256}))
    {'padding': {'pad_token': '<pad>', 'pad_id': 256}}
    """

    def id_of(name: Any, where: str) -> int:
        token = model.found_tokens.get(name, model.token_ids.get(from_byte_level(str(name)) or b""))
        if token is None:
            reason = f"names the token {short(name)}, which is neither special nor a byte"
            raise DataError(reason, where=where, remedy=("add it with ", Setting("special_tokens")))
        return token

    parts = {name: part for name, part in deepcopy(dict(carried)).items() if name != "tekken"}
    try:
        for each in flat(parts.get("post_processor", {}), "processors"):
            for tokens in each.get("special_tokens", {}).values():
                tokens["ids"] = [id_of(name, "post_processor") for name in tokens["tokens"]]
            for name in {"cls", "sep"} & each.keys():
                each[name][1] = id_of(each[name][0], "post_processor")
    except (KeyError, TypeError, AttributeError):
        reason = f"expected a post-processor, got {short(carried['post_processor'])}"
        raise DataError(reason, where="post_processor") from None
    if padding := parts.get("padding"):
        padding["pad_id"] = id_of(padding.get("pad_token"), "padding")
    if decoder := parts.get("tokenizer_config", {}).get("added_tokens_decoder"):
        entries = {model.found_tokens.get(entry["content"], -1): entry for entry in decoder.values()}
        ordered = {str(token): entries[token] for token in sorted(entries) if token >= 0}
        parts["tokenizer_config"]["added_tokens_decoder"] = ordered
    return parts


def without_roles(carried: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return parts that are carried without the roles of special tokens, or their places in lists of them.

    >>> without_roles({"tokenizer_config": {"eos_token": "</s>", "pad_token": "<pad>"}}, ["</s>"])
    {'tokenizer_config': {'pad_token': '<pad>'}}
    """
    if "tokenizer_config" not in carried:
        return dict(carried)
    config = {name: value for name, value in carried["tokenizer_config"].items() if content_of(value) not in names}
    for name in ("additional_special_tokens", "extra_special_tokens"):
        if isinstance(tokens := config.get(name), list):
            config[name] = [token for token in tokens if content_of(token) not in names]
        elif isinstance(tokens, Mapping):
            config[name] = {role: token for role, token in tokens.items() if content_of(token) not in names}
    return {**carried, "tokenizer_config": config}


def described(carried: Mapping[str, Any]) -> list[str]:
    """Name the parts that a file without them lacks. Parts that change nothing, such as ByteLevel, are not named.

    >>> described({"post_processor": {"type": "RobertaProcessing"}, "decoder": {"type": "ByteLevel"}})
    ['post-processor RobertaProcessing']
    >>> described({"tokenizer_config": {"add_bos_token": True, "eos_token": {"content": "</s>"}}, "chat_template": "…"})
    ['chat_template', 'add_bos_token', 'eos_token']
    """
    names = [f"post-processor {kind}" for kind in _types(carried.get("post_processor"), "processors")]
    names += (name for name in ("truncation", "padding") if carried.get(name))
    names += (f"decoder {kind}" for kind in _types(carried.get("decoder"), "decoders"))
    names += ["tekken settings"] * ("tekken" in carried)
    config = carried.get("tokenizer_config") or {}
    names += ["chat_template"] * bool(carried.get("chat_template") or config.get("chat_template"))
    length = config.get("model_max_length")
    names += ["model_max_length"] * (isinstance(length, int | float) and length < _NO_LIMIT)
    names += (name for name in _SWITCHES if config.get(name))
    for name in ROLES:
        value = content_of(config.get(name))
        if value and not (name in ("bos_token", "eos_token") and str(value) == END):
            names.append(name)
    return names


def _types(part: Any, parts: str) -> list[str]:
    """Return the types in a part, which may be a sequence. ByteLevel changes neither ids nor text."""
    if not isinstance(part, Mapping):
        return [] if part is None else [str(type(part).__name__)]
    if part.get("type") == "Sequence" and isinstance(part.get(parts), list):
        return [kind for each in part[parts] for kind in _types(each, parts)]
    templates = [part.get("single"), part.get("pair")]
    if part.get("type") == "TemplateProcessing" and "SpecialToken" not in str(templates):
        return []  # transformers adds it to every tokenizer
    return [] if part.get("type") == "ByteLevel" else [str(part.get("type"))]


def warn_not_written(model: Model, file: str, written: Collection[str] = ()) -> None:
    """Warn about the parts of a model that an export does not contain."""
    left_out = described({name: part for name, part in model.carried.items() if name not in written})
    if left_out:
        warn(f"the {file} does not contain the {', '.join(left_out)} of the model")
