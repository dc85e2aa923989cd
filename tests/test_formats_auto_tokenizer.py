"""AutoTokenizer gives the ids of an exported folder next to a config.json of every model type of transformers."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import transformers
from helpers import END
from transformers import AutoTokenizer
from transformers.models.auto import configuration_auto, tokenization_auto

from batchbpe import Tokenizer
from batchbpe.formats.auto_tokenizer import CHECKED, FILE, REPLACED, STALE

TEXTS = (
    "They'll don't SHOUT'S 12345 2½ ٣٤ HelloWorld",
    "cafe\u0301 \u212b \u1112\u1161\u11ab क़ हिन्दी\u0301",
    "a   b\n\n  c\t d \r\n \n x  ",
    f"{END}hi{END} <x> there",
    "<s> </s> <unk> <pad> [CLS]",
)
TYPES = sorted(
    {
        *configuration_auto.CONFIG_MAPPING_NAMES,
        *tokenization_auto.TOKENIZER_MAPPING_NAMES,
        *tokenization_auto.MODELS_WITH_INCORRECT_HUB_TOKENIZER_CLASS,
        "a type of one's own",
    }
)
NEW_VERSION = (
    f"transformers {transformers.__version__} differs from {CHECKED}: update REPLACED and CHECKED in "
    "formats/auto_tokenizer.py, and the table in docs/formats.md"
)


def trained(**split: Any) -> Tokenizer:
    return Tokenizer.train(texts=[*TEXTS] * 9, vocab_size=340, special_tokens=[END, "<x>"], **split)


PLAIN = trained(pattern="gpt4")
# Every class of transformers has another pattern, and most have another normalization.
NFC = trained(pattern=r"[a-z]+|[0-9]{1,2}|[A-Z][a-z]*|\s+|[^a-zA-Z0-9\s]+", normalization="NFC")
OWN = Tokenizer(replace(PLAIN.model, stop_words={PLAIN.vocab[300]: 340}))


@pytest.fixture(autouse=True)
def no_questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(prompt: str = "") -> str:
        raise AssertionError(prompt)

    monkeypatch.setattr("builtins.input", ask)
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))


def equal_ids(tokenizer: Tokenizer, folder: Path, **arguments: Any) -> bool:
    auto = AutoTokenizer.from_pretrained(folder, **arguments)
    return [auto(text)["input_ids"] for text in TEXTS] == [tokenizer.encode(text, "all") for text in TEXTS]


def different(tokenizer: Tokenizer, folder: Path, **arguments: Any) -> list[str]:
    """Return the model types for which AutoTokenizer fails or gives other ids."""
    found = []
    for each in TYPES:
        config = with_config(folder, each)
        try:
            equal = equal_ids(tokenizer, folder, **arguments)
        except Exception:
            equal = needs_more(config)
        if not equal:
            found.append(each)
    return found


def with_config(folder: Path, model_type: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"model_type": model_type}))
    return folder


def needs_more(folder: Path) -> bool:
    """Return whether even the configuration cannot be loaded, for lack of settings or of another package."""
    try:
        transformers.AutoConfig.from_pretrained(folder)
    except Exception as error:
        return not isinstance(error, ValueError)  # an unknown type, which AutoTokenizer accepts
    return False


@pytest.mark.filterwarnings("ignore")
def test_every_model_type(tmp_path: Path) -> None:
    """For the types in REPLACED, and only for them, a class of the folder is needed. It does no harm elsewhere."""
    plain = with_config(tmp_path / "plain", "llama")
    NFC.export(plain, "transformers")
    assert not [*plain.glob("*.py")]
    found = [different(NFC, plain)]
    NFC.export(tmp_path / "any", "transformers")
    found += [different(NFC, tmp_path / "any"), different(NFC, tmp_path / "any", trust_remote_code=True)]
    OWN.export(tmp_path / "own", "transformers")
    found += [different(OWN, tmp_path / "own", trust_remote_code=True)]
    if transformers.__version__ != CHECKED and found != [[*REPLACED], [], [], []]:
        pytest.skip(NEW_VERSION)
    assert found == [[*REPLACED], [], [], []]


def test_the_class_of_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It uses the core if this package is installed."""
    NFC.export(tmp_path, "transformers")
    assert type(AutoTokenizer.from_pretrained(tmp_path)).__name__ == "TokenizersBackend"
    trusted = AutoTokenizer.from_pretrained(tmp_path, trust_remote_code=True)
    assert type(trusted).__module__ == "batchbpe.transformers"
    monkeypatch.setitem(sys.modules, "batchbpe.transformers", None)
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "others"))
    for name in [name for name in sys.modules if name.startswith("transformers_modules")]:
        monkeypatch.delitem(sys.modules, name)
    other = AutoTokenizer.from_pretrained(tmp_path, trust_remote_code=True)
    assert type(other).__module__.startswith("transformers_modules")
    assert [other(text)["input_ids"] for text in TEXTS] == [trusted(text)["input_ids"] for text in TEXTS]


@pytest.mark.filterwarnings("ignore")
def test_the_class_of_this_package_needs_trust(tmp_path: Path) -> None:
    OWN.export(tmp_path / "own", "transformers")
    for each in [*REPLACED, "llama", "mistral", "gpt2", "bert"]:
        with pytest.raises(ValueError, match=r"custom code|Couldn't instantiate"):
            AutoTokenizer.from_pretrained(with_config(tmp_path / "own", each), trust_remote_code=False)


@pytest.mark.parametrize("trust", [None, False, True])
@pytest.mark.parametrize("model_type", ["qwen2", "llama"])
def test_saved_copies_keep_the_ids(model_type: str, trust: bool | None, tmp_path: Path) -> None:
    NFC.export(tmp_path / "first", "transformers")
    auto = AutoTokenizer.from_pretrained(with_config(tmp_path / "first", model_type), trust_remote_code=trust)
    auto.save_pretrained(with_config(tmp_path / "second", model_type))
    assert equal_ids(NFC, tmp_path / "second", trust_remote_code=trust if trust else None)
    assert Tokenizer.from_file(tmp_path / "second").model == NFC.model


@pytest.mark.parametrize(
    ("config", "needed"),
    [
        ('{"model_type": "llama"}', False),
        ('{"model_type": "mine"}', False),
        ('{"model_type": "qwen2"}', True),
        ('{"model_type": "gemma", "model_name": "qwen2"}', True),
        ("{}", True),
        ("[]", True),
        ("{", True),
        (None, True),
    ],
)
def test_the_class_is_written_only_if_needed(config: str | None, needed: bool, tmp_path: Path) -> None:
    PLAIN.export(tmp_path, "transformers")  # a class that is not needed is removed
    if config is not None:
        (tmp_path / "config.json").write_text(config)
    PLAIN.export(tmp_path, "transformers")
    written = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert (tmp_path / FILE).exists() == ("auto_map" in written) == ("except" not in written["batchbpe"]) == needed
    assert config in ("[]", "{") or equal_ids(PLAIN, tmp_path)


@pytest.mark.parametrize("tokenizer", [PLAIN, OWN], ids=["tokenizer.json", "class"])
def test_files_of_another_tokenizer_are_removed(tokenizer: Tokenizer, tmp_path: Path) -> None:
    """They add tokens, or replace tokenizer.json."""
    with_config(tmp_path, "llama")
    (tmp_path / "added_tokens.json").write_text('{"hi": 5}')
    (tmp_path / "special_tokens_map.json").write_text('{"pad_token": "<pad>"}')
    (tmp_path / "tekken.json").write_text("{}")
    with pytest.warns(UserWarning, match=f"removed {', '.join(STALE)}, from which"):
        tokenizer.export(tmp_path, "transformers")
    assert equal_ids(tokenizer, tmp_path, trust_remote_code=True)


def test_settings_that_change_ids_are_not_carried(tmp_path: Path) -> None:
    config = {"auto_map": {"AutoTokenizer": ["x.X", None]}, "batchbpe": "outdated", "fix_mistral_regex": True}
    carried = Tokenizer(replace(PLAIN.model, carried={"tokenizer_config": config}))
    carried.export(with_config(tmp_path, "mistral"), "transformers", allow_inexact=True)
    assert json.loads((tmp_path / "tokenizer_config.json").read_text()).keys() == {
        "tokenizer_class",
        "bos_token",
        "eos_token",
    }
