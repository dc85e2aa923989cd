"""Types of tokens in a GGUF file, and how llama.cpp changes them because of the names of the tokens.

This follows the end of `llama_vocab::impl::load` in llama-vocab.cpp (as in llama-cpp-python 0.3.36).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ..errors import listed, short

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
SPECIAL = (CONTROL, UNKNOWN)
DEFAULT_EOS = 11
"""The id that llama.cpp uses if a file does not have one."""
_END = (
    "<|eot_id|> <|im_end|> <|end|> <|return|> <|call|> <|flush|> <|calls|> <end_of_turn> <|endoftext|> </s> "
    "<|eom_id|> <EOT> _<EOT> [EOT] [EOS] <|end_of_text|> <end_of_utterance> <eos> <turn|> <|tool_response> "
    "<｜end▁of▁sentence｜> [e~["
)
"""Names that always make a token a control token, which ends a text."""
_BY_ROLE = {
    "prefix fim_pre": "<PRE> ▁<PRE> <|prefix|> <|fim_prefix|> <fim-prefix> <fim_prefix> <|code_prefix|> "
    "<｜fim▁begin｜>",
    "fim_suf suffix": "<|fim_suffix|> <fim-suffix> <fim_suffix> <｜fim▁hole｜> <SUF> ▁<SUF> <|code_suffix|> <|suffix|>",
    "fim_mid middle": "<|fim_middle|> <fim-middle> <fim_middle> <｜fim▁end｜> <MID> ▁<MID> <|code_middle|> <|middle|>",
    "fim_pad": "<|fim_pad|> <fim-pad> <fim_pad> <PAD> [PAD]",
    "fim_rep": "<|fim_repo|> <|repo_name|> <fim-repo> <REPO> <reponame>",
    "fim_sep": "<|file_sep|>",
}
"""Names that make a token a control token unless the file has the id of such a token."""
_ROLES_AT_THE_END = ("eos", "eot", "eom", "fim_pad", "fim_rep", "fim_sep")
_ALWAYS_FOUND = ("<|channel|>", "<|message|>", "<|start|>", "<|constrain|>")
ROLES = (*_ROLES_AT_THE_END, *" ".join(_BY_ROLE).split())
"""Roles on which the types depend."""


def retyped(types: Mapping[str, int], roles: Mapping[str, int]) -> dict[str, int]:
    """Return the types that llama.cpp gives to tokens, by name. `types` is in the order of the ids.

    `roles` has the ids of tokens with a role.

    >>> retyped({"a": NORMAL, "</s>": NORMAL, "<|start|>": CONTROL}, {})
    {'a': 1, '</s>': 3, '<|start|>': 4}
    >>> retyped({"</s>": CONTROL, "<|tool_response>": CONTROL}, {})
    {'</s>': 1, '<|tool_response>': 3}
    """
    names = [group for keys, group in _BY_ROLE.items() if roles.keys().isdisjoint(keys.split())]
    ends = [({"eos": DEFAULT_EOS} | {**roles}).get(role) for role in _ROLES_AT_THE_END]
    new = dict.fromkeys(" ".join((_END, *names)).split(), CONTROL) | dict.fromkeys(_ALWAYS_FOUND, USER_DEFINED)
    has_call = not types.keys().isdisjoint(("<|call|>", "<|calls|>"))
    if has_call and not types.keys().isdisjoint(("<|return|>", "<|flush|>")):
        new["<|end|>"] = USER_DEFINED
    if "<|tool_response>" in types or ("<|plamo:eos|>" in types and [*types].index("<|plamo:eos|>") in ends):
        new["</s>"] = NORMAL
    return {name: new.get(name, type) for name, type in types.items()}


def changes(before: Mapping[str, int], after: Mapping[str, int]) -> Iterator[str]:
    """Yield what llama.cpp encodes differently because of changed types, as clauses.

    >>> [*changes({"</s>": NORMAL, "<|start|>": CONTROL}, {"</s>": CONTROL, "<|start|>": USER_DEFINED})]
    ['treats tokens with these names as special: </s>', "finds '<|start|>' in every text, even if no special tokens are allowed"]
    """  # noqa: E501  the last line is a clause
    changed = {name: type for name, type in after.items() if type != before[name]}
    if control := sorted(name for name, type in changed.items() if type in SPECIAL):
        yield f"treats tokens with these names as special: {listed(control)}"
    for name, type in changed.items():
        if type == USER_DEFINED:
            yield f"finds {short(name)} in every text, even if no special tokens are allowed"
        elif type == NORMAL:
            yield f"never finds {short(name)}, because of the names of other tokens"


def stripped(found: Iterable[str], pre: str, model: str) -> dict[str, str]:
    """Return the flags of tokens that llama.cpp finds, by name. They depend on the pre-tokenizer and the model's name.

    >>> stripped(["<mask>"], "jina-v2-de", ""), stripped(["<s>", "<|end|>"], "dbrx", "Phi-3 small")
    ({'<mask>': 'lstrip'}, {'<|end|>': 'rstrip'})
    """
    model = model.lower()
    flags: dict[str, str] = {}
    if pre in ("jina-v2-de", "jina-v2-es", "jina-v2-code"):
        flags = {"<mask>": "lstrip"}
    elif "phi-3" in model or "phi3" in model:
        flags = dict.fromkeys({*found} - {"<unk>", "<s>", "<|endoftext|>"}, "rstrip")
    elif "modern-bert" in model:
        flags = {"[MASK]": "lstrip"}
    return {name: flag for name, flag in flags.items() if name in {*found}}
