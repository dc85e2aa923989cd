"""The atlas: every figure equals a plain computation, the page shows the JSON file, and hostile text is escaped."""

import json
import re
import unicodedata
import warnings
from collections import Counter
from html.parser import HTMLParser
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pytest
import regex
from helpers import END, TEXT

from batchbpe import PATTERNS, Model, Tokenizer
from batchbpe.analysis import atlas, audit
from batchbpe.analysis.vocab_atlas import short_names
from batchbpe.analysis.vocab_atlas.exports import exports_of
from batchbpe.analysis.vocab_atlas.facts import CONTENTS
from batchbpe.analysis.vocab_atlas.markup import between
from batchbpe.analysis.vocab_atlas.sections import _contents, _cost_column
from batchbpe.errors import DataError, OutputExistsError
from batchbpe.patterns import Split

SCRIPT = "</script><script>alert(1)</script>"
HOSTILE = [SCRIPT, '"><img src=x onerror=alert(1)>', "\u202etxt.exe", "a\u2066b", "<!--", "\x1b[31m", "\x00", "&lt;"]
GERMAN = "Sein oder Nichtsein, das ist hier die Frage: ob's edler im Gemüt, die Pfeil und Schleudern. "


def irregular() -> Model:
    """A vocabulary with everything that published ones have."""
    bytes_ = [None if byte in (0x04, 0xC0, 0xFF) else byte for byte in range(256)]
    merges = {
        (97, 98): 300,  # ab
        (98, 99): 301,  # bc
        (300, 99): 302,  # abc
        (97, 301): 303,  # abc, but ab is merged first
        (97, 32): 304,  # the pattern splits it
        (0xC3, 0xA9): 305,  # é
        (101, 0xCC): 306,  # e and half of an accent
        (306, 0x81): 307,  # é, decomposed
        (49, 50): 308,
        (32, 32): 309,
    }
    return Model(
        Split(r"[a-z\p{M}]+|\p{L}+|\d+|\s+|[^\w\s]+|_", normalization="NFC"),
        merges,
        byte_ids=bytes_,
        stop_words={b"ab": 310, "сл".encode(): 311},
        special_tokens={SCRIPT: 400, "<s>": 401},
        added_tokens={"zz": 402},
        decode_only={403: b"decoded", 404: b"ab"},
    )


@pytest.fixture(scope="module")
def some() -> dict[str, Tokenizer]:
    hostile = Model(
        r"[\s\S]+", {(60, 47): 256, (256, 115): 257}, special_tokens={name: 258 + n for n, name in enumerate(HOSTILE)}
    )
    return {
        "small": Tokenizer.train(TEXT, 400),
        "large": Tokenizer.train(TEXT, 900, special_tokens=[END]),
        "stop words": Tokenizer.train(TEXT, 600, stop_list_size=40),
        "irregular": Tokenizer(irregular()),
        SCRIPT: Tokenizer(hostile),
    }


def plain_encode(model: Model, text: str) -> tuple[list[int], list[int]]:
    """Return the tokens of a text without special tokens, and all tokens that are made on the way."""
    ids, made = [], []
    if model.split.normalization != "none":
        text = unicodedata.normalize(model.split.normalization, text)
    parts = re.split(f"({'|'.join(map(re.escape, model.added_tokens))})", text) if model.added_tokens else [text]
    for part in parts:
        if part in model.added_tokens:
            ids.append(model.added_tokens[part])
            continue
        for chunk in regex.findall(model.pattern, part):
            if chunk.encode() in model.stop_words:
                ids.append(model.stop_words[chunk.encode()])
                continue
            found, steps = plain_merge(model, chunk.encode())
            ids += found
            made += steps
    return ids, ids + made


def plain_merge(model: Model, chunk: bytes) -> tuple[list[int], list[int]]:
    ranks = {pair: rank for rank, pair in enumerate(model.merges)}
    tokens = [token for byte in chunk if (token := model.byte_ids[byte]) is not None]
    steps: list[int] = []
    while pairs := [(ranks[pair], at) for at, pair in enumerate(pairwise(tokens)) if pair in ranks]:
        at = min(pairs)[1]
        steps += tokens[at : at + 2]
        tokens[at : at + 2] = [model.merges[tokens[at], tokens[at + 1]]]
    return tokens, steps


def plain_ordinary(model: Model) -> dict[int, bytes]:
    found = {*model.special_tokens.values(), *model.added_tokens.values()}
    return {token: value for token, value in model.vocab.items() if token not in found}


def is_text(value: bytes) -> bool:
    try:
        return bool(value.decode())
    except UnicodeDecodeError:
        return False


def plain_content(value: bytes) -> str:
    """Return the script of the first letter, from its name in Python's own tables."""
    text = value.decode("utf-8", "ignore")
    names = {"CJK": "Han", "IDEOGRAPHIC": "Han", "MICRO": "Greek", "MODIFIER": "other letters"}
    for c in text:
        if unicodedata.category(c)[0] == "L":
            first = unicodedata.name(c).split()[0]
            script = names.get(first, first.capitalize())
            return script if script in CONTENTS else "other letters"
    if not text:
        return "parts of characters"
    if not text.strip():
        return "whitespace"
    return "digits" if any(c.isnumeric() for c in text) else "symbols"


def test_facts_equal_a_plain_computation(some: dict[str, Tokenizer]) -> None:
    content = atlas(some).content
    assert [each["name"] for each in content["vocabularies"]] == list(some)
    for each, tokenizer in zip(content["vocabularies"], some.values(), strict=True):
        model, ordinary = tokenizer.model, plain_ordinary(tokenizer.model)
        unreachable = [
            token
            for token, value in ordinary.items()
            if (plain_encode(model, value.decode())[0] if is_text(value) else plain_merge(model, value)[0]) != [token]
        ]
        assert each["unreachable"]["ids"] == sorted(unreachable)
        assert each["unreachable"]["number"] == len(unreachable)
        by_cause = [found["ids"] for found in each["causes"].values()]
        assert sorted(chain.from_iterable(by_cause)) == each["unreachable"]["ids"]
        times = Counter(ordinary.values())
        assert each["duplicates"]["ids"] == sorted(token for token in ordinary if times[ordinary[token]] > 1)
        partial = [token for token, value in ordinary.items() if len(value) > 1 and not is_text(value)]
        assert each["partial_utf8"]["ids"] == partial
        assert each["missing_bytes"] == [byte for byte in range(256) if bytes([byte]) not in model.vocab.values()]
        assert each["missing_utf8_bytes"] == [
            byte for byte in each["missing_bytes"] if byte not in (0xC0, 0xC1) and byte < 0xF5
        ]
        assert each["mean_bytes"] == sum(map(len, ordinary.values())) / len(ordinary)
        assert [token["bytes"] for token in each["longest"]] == sorted(map(len, ordinary.values()))[:-11:-1]
        assert each["contents"] == {name: list(map(plain_content, ordinary.values())).count(name) for name in CONTENTS}
        numbers = dict(each["numbers"])
        assert (numbers.pop("tokens"), numbers.pop("largest id")) == (len(model.vocab), max(model.vocab))
        assert sum(numbers.values()) == len(model.vocab) and each["source"] is each["format"] is None


def test_the_causes_of_unreachable_tokens() -> None:
    (each,) = atlas({"it": irregular()}).content["vocabularies"]
    causes = {cause: found["ids"] for cause, found in each["causes"].items()}
    # 300 and the decode-only 404 have the bytes of the stop word "ab", which is looked up first.
    assert causes == {"decode-only": [403, 404], "normalization": [307], "pattern": [304], "merges": [300, 303]}
    assert each["missing_utf8_bytes"] == [4] and each["missing_bytes"] == [4, 0xC0, 0xFF]
    added = Model("[a-z]+", {(122, 122): 256, (256, 122): 257}, added_tokens={"zz": 258})
    (each,) = atlas(added).content["vocabularies"]
    assert each["causes"]["added token"]["ids"] == [256, 257]


def test_overlap_equals_sets(some: dict[str, Tokenizer]) -> None:
    sets = [{*plain_ordinary(tokenizer.model).values()} for tokenizer in some.values()]
    assert atlas(some).shared.tolist() == [[len(one & other) for other in sets] for one in sets]


def test_text_equals_a_plain_computation(some: dict[str, Tokenizer]) -> None:
    texts = {"en": TEXT[:2000], "de": GERMAN * 3, "none": ""}
    found = atlas(some, texts=texts, parity="en")
    content, documents = found.content, [*texts.values()]
    assert content["text"]["groups"]["reference"] == "en" and content["text"]["groups"]["empty"] == ["none"]
    assert content["text"]["bytes"] == len("".join(documents).encode())
    assert content["text"]["groups"]["sizes"]["de"] == {
        "bytes": len(texts["de"].encode()),
        "characters": len(texts["de"]),
    }
    for each, tokenizer in zip(content["vocabularies"], some.values(), strict=True):
        model = tokenizer.model
        encoded = {group: plain_encode(model, text) for group, text in texts.items()}
        costs = {group: len(encoded[group][0]) / len(texts[group]) for group in ("en", "de")}
        for group, metrics in each["groups"].items():
            assert metrics["tokens"] == len(encoded[group][0])
            assert metrics["tokens_per_character"] == costs[group]
            assert metrics["parity"] == costs[group] / costs["en"]
        final, made = (Counter(token for tokens in encoded.values() for token in tokens[part]) for part in (0, 1))
        assert each["metrics"]["tokens"] == final.total()
        ordinary = plain_ordinary(model)
        assert each["unused"]["ids"] == [token for token in ordinary if not final[token]]
        assert each["residues"]["ids"] == [
            token for token in sorted(made) if final[token] < 0.1 * made[token] and len(model.vocab[token]) > 1
        ]
        in_text = [token for token in each["unreachable"]["ids"] if final[token]]
        assert each["unreachable_in_text"]["ids"] == in_text


def test_a_token_that_the_pattern_splits_alone_can_be_in_a_text() -> None:
    model = Model(r"a b(?=c)|[\s\S]", {(97, 32): 256, (256, 98): 257})
    (each,) = atlas({"it": model}, texts="a bc").content["vocabularies"]
    assert each["causes"]["pattern"]["ids"] == [256, 257]
    assert each["unreachable_in_text"]["ids"] == [257]


def test_engines_are_those_to_which_exports_succeed(some: dict[str, Tokenizer], tmp_path: Path) -> None:
    formats = {
        "tokenizers 0.23": "huggingface",
        "llama.cpp": "gguf",
        "mistral-common": "tekken",
        "minbpe": "minbpe",
        "transformers": "transformers",
    }
    tekken = Model(PATTERNS["tekken"], {(99, 100): 258}, byte_ids=range(2, 258), special_tokens={"<s>": 0, "</s>": 1})
    more = {"tekken": Tokenizer(tekken), "gpt2": Tokenizer.train(TEXT, 300, pattern="gpt2")}
    outcomes = Counter[bool]()
    for name, tokenizer in {**some, **more}.items():
        for engine, export in exports_of(tokenizer.model).items():
            outcomes[export.exact] += 1
            if engine not in formats:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    tokenizer.export(tmp_path / f"{engine} {len(name)}", formats[engine])  # type: ignore[arg-type]
                except DataError as error:
                    assert not export.exact and export.reason in str(error)
                else:
                    assert export.exact
    assert min(outcomes[True], outcomes[False]) > 10
    assert exports_of(more["tekken"].model)["mistral-common"].exact
    assert exports_of(some["large"].model)["transformers"].reason == ""
    assert "trust_remote_code" in exports_of(irregular())["transformers"].reason


def test_tiktoken_needs_one_regular_expression_and_version_1_a_known_pattern() -> None:
    merges = {(97, 98): 256}
    bare, normalized, own = (Model(Split.of(name), merges) for name in ("qwen2", "NFC > qwen2", "[a-z]+"))
    assert [exports_of(model)["tiktoken"].exact for model in (bare, normalized, own)] == [True, False, True]
    assert [exports_of(model)["tokenizers 1.0"].exact for model in (bare, normalized, own)] == [True, True, False]
    assert "[a-z]+" in exports_of(own)["tokenizers 1.0"].reason


class Page(HTMLParser):
    """The tags, the text, and the cells of each table by section."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str | None]] = []
        self.rows: dict[str, list[list[str | None]]] = {}
        self.words: list[str] = []
        self.shown: dict[str, list[str]] = {}
        self.section, self.in_cell = "", False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += attrs
        given = dict(attrs)
        if tag == "section":
            self.section = given["id"] or ""
        if tag == "tr":
            self.rows.setdefault(self.section, []).append([])
        if tag == "td":
            self.rows[self.section][-1].append(given.get("data-v"))
            self.shown.setdefault(self.section, []).append("")
        self.in_cell = tag == "td"

    def handle_endtag(self, tag: str) -> None:
        self.in_cell = False

    def handle_data(self, data: str) -> None:
        self.words.append(data)
        if self.in_cell:
            self.shown[self.section][-1] += data


def written(found: Any, folder: Path) -> tuple[str, Any]:
    page, beside = found.write(folder / "atlas.html")
    return page.read_text(encoding="utf-8"), json.loads(beside.read_text(encoding="utf-8"))


def test_the_page_shows_the_numbers_of_the_json_file(some: dict[str, Tokenizer], tmp_path: Path) -> None:
    texts = {"en": TEXT[:1000], "de": GERMAN}
    page, content = written(atlas(some, texts=texts, parity="en"), tmp_path)
    rows = {name: [row for row in found if row] for name, found in Page(page).rows.items()}
    vocabularies = content["vocabularies"]

    def shown(section: str, *columns: list[Any]) -> None:
        expected = [[None if value is None else str(value) for value in row] for row in zip(*columns, strict=True)]
        assert expected in (rows[section], rows[section][: len(expected)], rows[section][len(expected) :])

    def column(*path: str) -> list[Any]:
        values = vocabularies
        for name in path:
            values = [value[name] for value in values]
        return values

    numbers = column("numbers")
    shown(
        "overview",
        column("split"),
        [each["tokens"] for each in numbers],
        [each["special tokens"] + each["added tokens"] for each in numbers],
        column("mean_bytes"),
        [each["longest"][0]["bytes"] for each in vocabularies],
        column("unreachable", "number"),
        column("residues", "number"),
        column("unused", "number"),
        column("partial_utf8", "number"),
        list(map(len, column("missing_utf8_bytes"))),
        column("duplicates", "number"),
    )
    names = ("tokens", "change", "bytes_per_token", "tokens_per_word", "single_token_word_rate", "vocabulary_used")
    shown("text", *(column("metrics", name) for name in (*names, "renyi_efficiency")))
    groups = list(content["text"]["groups"]["sizes"])
    shown("groups", *(column("groups", group, "tokens_per_character") for group in groups))
    shown("groups", *(column("groups", group, "parity") for group in groups), column("gini"))
    used = [name for name in CONTENTS if any(column("contents", name))]
    assert sorted(map(sorted, zip(*rows["contents"], strict=True))) == sorted(
        sorted(map(str, column("contents", name))) for name in used
    )
    shown("overlap", *map(list, zip(*content["shared"], strict=True)))
    engines = vocabularies[0]["exports"]
    shown("engines", *([int(value) for value in column("exports", engine, "exact")] for engine in engines))


def test_cells_are_formatted(tmp_path: Path) -> None:
    small = Model("[a-z]+", {(97, 98): 256})
    large = Model("[a-z]+", {(97, 98): 256, (98, 99): 257, (49, 50): 258, (0xD0, 0xB4): 259})
    given = {"small": small, "large": large, "both": large}
    shown = Page(written(atlas(given, texts={"en": "abab", "de": "acac"}, parity="en"), tmp_path)[0]).shown
    assert shown["overlap"] == ["100", "100", "100", "99", "100", "100", "99", "100", "100"]
    assert shown["groups"] == [
        *("0.500", "1.000") * 3,  # tokens per character
        *("1.00", "2.00", "0.167") * 3,
    ]
    assert {f"{100 * 128 / 257:.1f}", f"{100 * 53 / 257:.1f}", f"{100 * 54 / 260:.1f}"} <= {*shown["contents"]}
    assert shown["engines"][:7] == ["●", "●", "○", "●", "○", "●", "●"]


def test_hostile_text_is_escaped(some: dict[str, Tokenizer], tmp_path: Path) -> None:
    bad = tmp_path / f"{HOSTILE[1].replace('/', '')}.json"
    bad.write_text(f'{{"model": {{"type": "{HOSTILE[4]}<b>{HOSTILE[2]}"}}}}', encoding="utf-8")
    given = {
        **some,
        HOSTILE[2]: some["small"],
        "bad\x1b": bad,
        HOSTILE[1]: Model("<b>(?=</b>)|[a-z]+", {(60, 47): 256}),
    }
    texts = {"<b>\u202e": "to be </script>", 'de"': "zu <i>"}
    with pytest.warns(UserWarning, match="does not match"):
        page, content = written(atlas(given, texts=texts), tmp_path)
    assert content["vocabularies"][4]["name"] == SCRIPT and content["failures"][0]["name"] == "bad\x1b"
    assert not [c for c in page.replace("\n", "") if not c.isprintable()]
    parsed = Page(page)
    assert (parsed.tags["script"], parsed.tags["img"], parsed.tags["style"], parsed.tags["i"]) == (1, 0, 1, 0)
    assert not [name for name, _ in parsed.attributes if name.startswith("on") or name in ("src", "style")]
    assert {value for name, value in parsed.attributes if name == "href"} == {
        value for value in (dict([each])["href"] for each in parsed.attributes if each[0] == "href") if value[0] == "#"
    }
    assert SCRIPT in "".join(parsed.words)
    (policy,) = [value for name, value in parsed.attributes if name == "content" and value and "script-src" in value]
    assert policy.startswith("default-src 'none'; script-src 'sha256-") and "unsafe" not in policy


def test_without_a_text_only_what_needs_none_is_shown(some: dict[str, Tokenizer], tmp_path: Path) -> None:
    page, content = written(atlas(some), tmp_path)
    assert content["text"] is None
    needing_text = ("metrics", "unused", "residues", "scaffolds", "groups", "gini", "unreachable_in_text")
    assert {each[name] for each in content["vocabularies"] for name in needing_text} == {None}
    assert [*Page(page).rows] == ["overview", "contents", "overlap", "engines"]
    assert "residues" not in page.partition("<body>")[2]


def test_files_that_cannot_be_loaded_are_listed(tmp_path: Path) -> None:
    Tokenizer.train(TEXT, 300).save(tmp_path / "mine")
    (tmp_path / "damaged.json").write_text('{"model": ', encoding="utf-8")
    (tmp_path / "mine.txt").write_text("to be", encoding="utf-8")
    paths = [tmp_path / name for name in ("mine.model", "damaged.json", "absent.model", "mine.txt")]
    found = atlas(paths)
    assert [*found.facts] == ["mine.model"] and [*found.failures] == ["damaged.json", "absent.model", "mine.txt"]
    page, content = written(found, tmp_path)
    errors = {each["name"]: each["error"] for each in content["failures"]}
    assert "not a valid tokenizer.json" in errors["damaged.json"] and "not found" in errors["absent.model"]
    assert errors["damaged.json"].startswith("not a valid")  # without the name, which is shown before it
    assert str(found).count("damaged.json") == 1
    assert all(error in "".join(Page(page).words) for error in errors.values())
    assert content["vocabularies"][0]["format"] == "batchbpe" and "absent.model" in str(found)
    with pytest.raises(FileNotFoundError, match=r"absent\.model"):
        atlas(paths[2])
    with pytest.raises(DataError, match=r"none of the 2 files can be loaded; the first: .*damaged\.json"):
        atlas(paths[1:3])
    with pytest.raises(TypeError, match="must be a Tokenizer, a Model"):
        atlas([paths[0], 5])  # type: ignore[list-item]


def test_merges_that_make_the_same_token_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    Tokenizer.train("abcabc abc", 258).export(path, "huggingface")
    fields = json.loads(path.read_text())
    assert "abc" in fields["model"]["vocab"]
    both = [merge for merge in (["a", "bc"], ["ab", "c"]) if merge not in fields["model"]["merges"]]
    fields["model"]["vocab"] |= {"bc": 258, "ab": fields["model"]["vocab"]["ab"]}
    fields["model"]["merges"] += [["b", "c"], *both]
    path.write_text(json.dumps(fields))
    (each,) = atlas(path).content["vocabularies"]
    assert each["numbers"]["merges"] == 3 and each["numbers"]["merges listed"] == 4


def test_equal_vocabularies_and_names(tmp_path: Path) -> None:
    for folder in ("one", "two", "three"):
        (tmp_path / folder).mkdir()
        Tokenizer.train(TEXT, 300 if folder != "three" else 310).export(
            tmp_path / folder / "tokenizer.json", "huggingface"
        )
    paths = [tmp_path / folder / "tokenizer.json" for folder in ("one", "two", "three", "one")]
    found = atlas(paths)
    names = [*found.facts]
    assert len(names) == 4 and names[1].endswith("two/tokenizer.json")
    same_as = [each["same_as"] for each in found.content["vocabularies"]]
    assert same_as == [[names[1], names[3]], [names[0], names[3]], [], [names[0], names[1]]]
    assert [*atlas(paths[:3]).facts] == ["one", "two", "three"]
    assert short_names([irregular(), irregular(), "x.json"]) == ["Model", "Model 2", "x.json"]


def test_rank_files_with_unknown_ranks_need_a_pattern(tmp_path: Path) -> None:
    path = tmp_path / "mine.tiktoken"
    Tokenizer.train(TEXT, 300).export(path, "tiktoken")
    with pytest.raises(DataError, match="rank files do not store their pattern"):
        atlas(path)
    assert atlas([path], pattern="gpt2").facts["mine.tiktoken"].split == "gpt2"


def test_the_json_file_replaces_only_one_of_an_atlas(some: dict[str, Tokenizer], tmp_path: Path) -> None:
    found = atlas(some["small"])
    first = written(found, tmp_path)
    assert written(found, tmp_path) == first
    (tmp_path / "tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(OutputExistsError, match="exists and is not of an atlas"):
        found.write(tmp_path / "tokenizer.html")
    assert (tmp_path / "tokenizer.json").read_text() == "{}" and not (tmp_path / "tokenizer.html").exists()
    with pytest.raises(ValueError, match=r"must end with \.html"):
        found.write(tmp_path / "atlas.json")


def test_results_do_not_depend_on_threads(some: dict[str, Tokenizer]) -> None:
    one, two = (atlas(some, texts=TEXT, threads=threads).content for threads in (1, 2))
    assert one == two


def test_many_vocabularies(tmp_path: Path) -> None:
    tokenizer = Tokenizer.train(TEXT, 300)
    page, content = written(atlas({f"number {n}": tokenizer for n in range(60)}), tmp_path)
    assert len(content["vocabularies"][0]["same_as"]) == 59 and {*chain(*content["shared"])} == {300}
    assert len(page) < 1_000_000


def test_tables_in_a_terminal_and_a_notebook(some: dict[str, Tokenizer]) -> None:
    found = atlas({"small": some["small"], "large": some["large"]}, texts={"en": TEXT[:500], "de": GERMAN})
    lines = str(found).splitlines()
    assert lines[0].split()[:5] == ["vocabulary", "tokens", "unreachable", "partial", "utf8"]
    assert lines[1].split()[:2] == ["small", "400"]
    assert any(line.split()[:3] == ["small", "100.0", "100.0"] for line in lines)
    assert "<table>" in found._repr_html_() and audit(some["small"]).residues is None


def test_arguments_that_need_a_text() -> None:
    for options in (
        {"group_column": "language"},
        {"by_file": True},
        {"parity": "en"},
        {"per": "byte"},
        {"sample": 0.5},
    ):
        with pytest.raises(ValueError, match="needs a text"):
            atlas(irregular(), **options)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="must contain at least one tokenizer"):
        atlas([])


def test_heat() -> None:
    assert [between(value, 0, 4) for value in (-1, 0, 1, 4, 9)] == [0, 0, 0.25, 1, 1]


def test_contents_are_colored_by_their_fraction() -> None:
    rows = [{"name": "a", "contents": {"Latin": 5_999, "Lao": 1, "Han": 4_000}}]
    _, section = _contents({"vocabularies": rows})
    assert re.findall(r'class="n (h\d+)"[^>]*>([^<]+)<', section) == [("h12", "60.0"), ("h8", "40.0"), ("h0", "·")]


def test_similar_costs_have_similar_colors() -> None:
    def heats(*costs: float) -> list[float | None]:
        rows = [{"groups": {"en": {"tokens_per_byte": cost}}} for cost in costs]
        column = _cost_column(rows, "en", "tokens_per_byte")
        return [column.cell(each).heat for each in rows]

    assert heats(0.25, 0.26) == pytest.approx([0, 0.057], abs=0.001)
    assert heats(0.25, 0.5, 2) == pytest.approx([0, 1 / 3, 1])
