"""The viewer without a browser: what the page asks, and who may ask."""

import json
import re
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import uvicorn
from helpers import TEXT
from starlette.testclient import TestClient

from batchbpe import ChunkCounts, Model, Tokenizer
from batchbpe.viewer import api, server, static_page
from batchbpe.viewer.server import STATIC, application
from batchbpe.viewer.vocabulary import KINDS, Query, TokenCounts, Vocabulary
from batchbpe.viewer.workspace import REMEMBERED, Workspace

TOKENIZER = Tokenizer.train(TEXT, 600, stop_list_size=5, special_tokens=["<|endoftext|>"])
OTHER = Tokenizer.train(TEXT, 300)
COUNTS = ChunkCounts.count(TEXT)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    space = Workspace({"mine": TOKENIZER, "other": OTHER}, {"counts": COUNTS})
    data = tmp_path_factory.mktemp("data") / "data.txt"
    data.write_text("to be or not to be")
    space.count_data([str(data)])
    with TestClient(application(space), base_url="http://127.0.0.1:8765") as client:
        yield client


def ask(client: TestClient, path: str, **parameters: Any) -> Any:
    response = client.get(f"/api/{path}", params=parameters)
    assert response.status_code == 200, response.text
    return response.json()


def encode(client: TestClient, text: str, merges: int | None = None) -> Any:
    response = post(client, text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode(), merges)
    assert response.status_code == 200, response.text
    return response.json()


def post(client: TestClient, text: bytes, merges: int | str | None = None) -> Any:
    address = "/api/encode" if merges is None else f"/api/encode?merges={merges}"
    return client.post(address, content=text, headers={"content-type": "application/octet-stream"})


def test_workspace(client: TestClient) -> None:
    answer = ask(client, "workspace")
    mine, other = answer["models"]
    assert (mine["name"], mine["tokens"], mine["merges"], mine["stop_words"]) == ("mine", 600, 338, 5)
    assert (mine["special_tokens"], mine["pattern"], other["log"]["size"][0] > 0) == ([599], "gpt4", True)
    assert sum(mine["log"]["size"]) == 338
    (counts,) = answer["counts"]
    assert (counts["total"], counts["unique"]) == (COUNTS.total, COUNTS.unique)
    assert counts["curve"]["rank"][-1] == COUNTS.unique and counts["curve"]["count"][0] == COUNTS.most_common(1)[0][1]


@pytest.mark.parametrize(
    "text", ["", "to be", "né 日本 😀", "👩‍👩‍👧‍👦 हिन्दी العربية", "\ud83d\ude00 \ud800", "\0\r\n\u202e", TEXT]
)
def test_encode(client: TestClient, text: str) -> None:
    answer = encode(client, text)
    shown = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    units = shown.encode("utf-16-le")
    for model, tokenizer in zip(answer["models"], [TOKENIZER, OTHER], strict=True):
        assert model["ids"] == tokenizer.encode(shown, "all")
        start, joined = 0, b""
        for token, end in zip(model["ids"], model["ends"], strict=True):
            joined += tokenizer.vocab[token]
            if end >= 0:  # then the tokens so far are whole characters
                assert joined.decode() == units[2 * start : 2 * end].decode("utf-16-le")
                start, joined = end, b""
            else:
                with pytest.raises(UnicodeDecodeError):
                    joined.decode()
        assert not joined and 2 * start == len(units)
    assert (answer["bytes"], answer["characters"]) == (len(shown.encode()), len(shown))


def test_encode_with_text_that_is_dropped() -> None:
    tokenizer = Tokenizer(Model(split=r"\w+", merges={(97, 98): 256}))
    client = TestClient(application(Workspace({"words": tokenizer})), base_url="http://localhost")
    with pytest.warns(UserWarning, match="the pattern does not match 5 bytes"):
        (model,) = encode(client, "– ab é")["models"]
    assert (model["starts"], model["ends"]) == ([2, 5, ~6], [4, ~6, 6])


def test_a_text_with_many_tokens_is_shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    """At a boundary of all models and of characters."""
    pairs, single = (Tokenizer(Model("(?s).+", merges)) for merges in ({(97, 98): 256, (97, 97): 257}, {}))
    space, text = Workspace({"pairs": pairs, "bytes": single}), "abé" * 6 + "aa"
    whole = api.encode(space, {"text": text})
    assert whole["shown"] == len(text)
    for most in range(sum(model["tokens"] for model in whole["models"])):
        monkeypatch.setattr(api, "MAX_TOKENS", most)
        answer = api.encode(space, {"text": text})
        shown = answer["shown"]
        assert sum(len(model["ids"]) for model in answer["models"]) <= most
        # "ab" is 3 tokens of the two models, "é" 4.
        assert shown == len("abé" * (most // 7)) + (2 if most % 7 >= 3 and most < 42 else 0)
        for model, tokenizer, all_tokens in zip(answer["models"], (pairs, single), whole["models"], strict=True):
            assert tokenizer.decode(model["ids"]) == text[:shown] and model["tokens"] == all_tokens["tokens"]
            assert len(model["ends"]) == len(model["ids"]) and model["ends"] == all_tokens["ends"][: len(model["ends"])]
        assert answer["differences"] == whole["differences"][: 2 * text[:shown].count("ab")]
        assert answer["differences_total"] == len(whole["differences"]) // 2
        assert (answer["bytes"], answer["characters"]) == (whole["bytes"], whole["characters"])


def test_long_tokens_are_shortened() -> None:
    """A small model can describe many tokens of a megabyte, by doubling."""
    doubled = {(97, 97) if i == 256 else (i - 1, i - 1): i for i in range(256, 276)}
    longer = {(275, byte): 276 + byte for byte in range(100)}
    space = Workspace({"long": Tokenizer(Model(split="(?s).+", merges=doubled | longer))})
    listed = api.vocabulary(space, {"rows": "500"})
    described = api.token(space, {"id": "275"})
    assert (len(listed["rows"]), len(described["built"])) == (376, 100)
    for answer in (listed, described, api.workspace(space)):
        assert len(json.dumps(answer)) < 500_000
    assert described["token"]["bytes"] == 1 << 20 and described["token"]["text"] == "a" * 256
    assert described["built"][0]["hex"] == "61" * 256


def test_rows_and_merge_trees_are_bounded() -> None:
    chain = {(97, 97): 256} | {(token, 97): token + 1 for token in range(256, 5000)}
    space = Workspace({"long": Tokenizer(Model(split="a+", merges=chain))})
    assert len(api.token(space, {"id": "5000"})["parts"]) == 2000
    assert len(api.token(space, {"id": "97"})["built"]) == 200
    counts = ChunkCounts.count(texts=[f"{n}" for n in range(1000)])
    for answer in (
        api.vocabulary(space, {"rows": "1000000"}),
        api.chunks(Workspace(counts={"counts": counts}), {"rows": "1000000"}),
    ):
        assert len(answer["rows"]) == 500 < answer["total"]


def test_a_token_is_shortened_between_characters() -> None:
    words = ["日" * 100, "a" + "日" * 100, "日" * 85, b"\x80" * 300]
    stop_words = {word.encode() if isinstance(word, str) else word: 256 + n for n, word in enumerate(words)}
    rows = api.vocabulary(Workspace({"mine": Tokenizer(Model(r"\S+", {}, stop_words))}), {"least": "100"})["rows"]
    assert [(row["text"], row["bytes"]) for row in rows] == [
        ("日" * 85, 300),
        ("a" + "日" * 85, 301),
        ("日" * 85, 255),
        (None, 300),
    ]


def test_the_first_merges(client: TestClient) -> None:
    for merges in (0, 10, 338, 9999):
        ids = encode(client, TEXT, merges)["models"][0]["ids"]
        shorter = Model(TOKENIZER.pattern, dict(list(TOKENIZER.merges.items())[:merges]), TOKENIZER.model.stop_words)
        assert ids == Tokenizer(shorter).encode(TEXT)


def test_one_model_is_replayed_and_few_are_kept(client: TestClient) -> None:
    answer = client.post(
        "/api/encode?merges=3&model=1", content=b"to be", headers={"content-type": "application/octet-stream"}
    ).json()
    assert [model["name"] for model in answer["models"]] == ["other"]
    space = Workspace({"mine": OTHER})
    for merges in range(10):
        space.replay("to be", 0, merges)
    assert space.after.cache_info().currsize <= 4
    assert not space.token_counts


def test_phrases_come_after_all_merges() -> None:
    model = Model(split=r" ?\w+", merges={(32, 98): 256}, phrases={(97, 256, 256): 257})
    space = Workspace({"phrases": Tokenizer(model)})
    replayed = [space.replay("a b b", 0, merges).ids["phrases"].tolist() for merges in (0, 1, None)]
    assert replayed == [[97, 32, 98, 32, 98], [97, 256, 256], [257]]
    assert Vocabulary(Tokenizer(model)).built_from(97) == [257]
    answer = api.token(space, {"id": 257})
    assert (answer["token"]["kind"], answer["token"]["parts"], len(answer["parts"])) == ("phrase", (97, 256, 256), 5)


def test_token(client: TestClient) -> None:
    merged = next(token for token, value in TOKENIZER.vocab.items() if value == b" question")
    answer = ask(client, "token", model=0, id=merged)
    info = answer["token"]
    assert (info["text"], info["hex"], info["kind"]) == (" question", b" question".hex(), "stop word")
    merged = max(TOKENIZER.merges.values(), key=lambda token: len(TOKENIZER.vocab[token]))
    answer = ask(client, "token", model=0, id=merged, corpus="data")
    tree = {node.token for node in _nodes(TOKENIZER.merge_tree(merged))}
    assert {int(each) for each in answer["parts"]} == tree
    assert answer["token"]["rank"] == list(TOKENIZER.merges.values()).index(merged)
    (space,) = (token for token, value in OTHER.vocab.items() if value == b" ")
    built = ask(client, "token", model=1, id=space)
    assert {each["id"] for each in built["built"]} == {new for pair, new in OTHER.merges.items() if space in pair}
    kinds = [ask(client, "token", model=0, id=token)["token"]["kind"] for token in (0, 256, 261, 599)]
    assert kinds == ["byte", "stop word", "merge", "special"]


def _nodes(tree: Any) -> Iterator[Any]:
    yield tree
    for part in tree.parts:
        yield from _nodes(part)


def found(client: TestClient, **parameters: Any) -> list[int]:
    return [row["id"] for row in ask(client, "vocabulary", rows=500, **parameters)["rows"]]


def test_vocabulary_search(client: TestClient) -> None:
    def expected(needle: bytes) -> list[int]:
        return [token for token, value in TOKENIZER.vocab.items() if needle in value]

    assert found(client, search="th") == expected(b"th") != []
    assert found(client, search="0x74 68") == found(client, search="0x7468") == expected(b"th")
    assert found(client, search="#300") == [300]
    assert found(client, search="97") == [97, *expected(b"97")]
    assert found(client, search="語") == expected("語".encode())
    assert found(client, search="0x7") == expected(b"0x7")
    answer = ask(client, "vocabulary", search="e", start=2, rows=3)
    assert answer["total"] == len(expected(b"e"))
    assert [row["id"] for row in answer["rows"]] == expected(b"e")[2:5]


def test_vocabulary_filters(client: TestClient) -> None:
    for kind, size in zip(KINDS, [256, 5, 338, 0, 1, 0, 0, 0], strict=True):
        assert ask(client, "vocabulary", kind=kind)["total"] == size
    vocab = TOKENIZER.vocab
    assert found(client, least=4, most=5) == [token for token in vocab if 4 <= len(vocab[token]) <= 5]
    partial = found(client, partial=1)
    assert {*range(128, 256)} < {*partial}
    for token in partial:
        with pytest.raises(UnicodeDecodeError):
            vocab[token].decode()
    used = {*TOKENIZER.encode("to be or not to be")}
    assert {*found(client, unused=1, corpus="data")} | {*found(client, unused=1, corpus="data", start=500)} == {
        *vocab
    } - used
    key = encode(client, "to be<|endoftext|>")["key"]
    assert 599 not in found(client, unused=1, corpus=key, kind="special")
    greek = found(client, script="Greek")
    assert greek and all(re.search("[α-ω]", vocab[token].decode("utf-8", "ignore")) for token in greek)
    facets = ask(client, "vocabulary")["facets"]
    assert facets["script"]["Greek"] == len(greek) and facets["kind"]["byte"] == 256
    assert sum(facets["script"].values()) == sum(facets["kind"].values()) == 600


def test_vocabulary_order(client: TestClient) -> None:
    vocab = TOKENIZER.vocab
    assert found(client, descending=1)[:2] == [599, 598]
    assert found(client, sort="text") == sorted(vocab, key=lambda token: (vocab[token], token))[:500]
    lengths = [len(vocab[token]) for token in found(client, sort="bytes", descending=1)]
    assert lengths == sorted(lengths, reverse=True)
    rows = ask(client, "vocabulary", sort="count", descending=1, corpus="data")["rows"]
    counts = [row["count"] for row in rows]
    assert counts == sorted(counts, reverse=True) and counts[0] == 2 == TOKENIZER.encode("to be or not to be").count(
        rows[0]["id"]
    )


def test_diff(client: TestClient) -> None:
    models = [Tokenizer.train("aaabdaaabac", size) for size in (258, 259)]
    moved = {pair: {256: 300}.get(token, token) for pair, token in models[1].merges.items()}
    merges = {(300 if one == 256 else one, 300 if two == 256 else two): token for (one, two), token in moved.items()}
    models.append(Tokenizer(replace(models[1].model, merges=merges)))
    space = Workspace(dict(zip("abc", models, strict=True)))

    def rows(before: int, after: int, part: str, **query: str) -> list[tuple[int, list[int]]]:
        answer = api.diff(space, {"before": str(before), "after": str(after), "part": part, **query})
        assert answer["counts"] == models[after].id_map(models[before]).counts
        assert answer["total"] >= len(answer["rows"])
        return [(row["id"], [other["id"] for other in row["others"]]) for row in answer["rows"]]

    assert rows(0, 1, "added") == rows(1, 0, "removed") == [(258, [256, 257])]
    assert rows(0, 1, "removed") == rows(0, 1, "moved") == rows(1, 1, "added") == []
    assert rows(1, 2, "moved") == [(300, [256])] and rows(2, 1, "moved") == [(256, [300])]
    assert rows(0, 1, "added", search="d") == [] != rows(0, 1, "added", search="aab")
    assert rows(1, 0, "removed", start="1") == []
    wrong = client.get("/api/diff", params={"part": "kept"})
    assert (wrong.status_code, "must be 'removed', 'added' or 'moved'" in wrong.json()["error"]) == (400, True)
    assert client.get("/api/diff", params={"before": "2"}).json() == {"error": "before must be less than 2, got 2"}


def test_scripts_of_mixed_and_partial_tokens() -> None:
    words = ["1日a", "—", "한글", "ⵣ"]
    tokenizer = Tokenizer(
        Model(split=r"\S+", merges={}, stop_words={word.encode(): 256 + n for n, word in enumerate(words)})
    )
    vocabulary = Vocabulary(tokenizer)
    for script, token in {"Han": 256, "no letters": 257, "Hangul": 258, "other letters": 259}.items():
        assert token in vocabulary.find(Query(script=script))


def test_gaps_between_ids() -> None:
    vocabulary = Vocabulary(Tokenizer(Model(split=r"\w+", merges={}, special_tokens={"<e>": 1000})))
    assert vocabulary.find(Query(descending=True))[0] == 1000
    counted = TokenCounts(np.zeros(1001, np.int64))
    assert len(vocabulary.find(Query(unused=True), counted)) == 257


def test_chunks(client: TestClient) -> None:
    rows = ask(client, "chunks")["rows"]
    assert [(row["text"], row["count"]) for row in rows] == COUNTS.most_common(100)
    expected = [chunk for chunk in COUNTS if "o" in chunk]
    answer = ask(client, "chunks", search="o", start=1, rows=2)
    assert ([row["text"] for row in answer["rows"]], answer["total"]) == (expected[1:3], len(expected))
    # The end of one chunk and the start of the next are not in one chunk.
    first, second = list(COUNTS)[:2]
    assert ask(client, "chunks", search=first[-1] + second)["total"] == 0


def test_a_search_says_if_it_found_only_the_first_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    space = Workspace(counts={"counts": COUNTS})
    number = sum("o" in chunk for chunk in COUNTS)
    for most, has_more in ((number, False), (number - 1, True)):
        monkeypatch.setattr(api, "MAX_FOUND", most)
        answer = api.chunks(space, {"search": "o"})
        assert (answer["total"], answer["has_more"]) == (most, has_more)


def test_a_long_chunk_is_searched_once_and_shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = ChunkCounts.count(["a" * 1_000_000 + " ba", "c"])
    looked_up: list[int] = []

    def searchsorted(offsets: Any, place: int, side: Any) -> Any:
        looked_up.append(place)
        return offsets.searchsorted(place, side)

    monkeypatch.setattr(np, "searchsorted", searchsorted)
    answer = api.chunks(Workspace(counts={"counts": counts}), {"search": "a"})
    assert len(looked_up) == answer["total"] == 2, "one match of each chunk"
    assert len(json.dumps(answer)) < 2000
    assert sorted(row["bytes"] for row in answer["rows"]) == [3, 1_000_000]


@pytest.mark.parametrize(
    ("path", "parameters", "error"),
    [
        ("token", {"id": 9999}, "id must be the id of a token of mine, got 9999"),
        ("token", {"id": -1}, "id must be an integer of at least 0, got '-1'"),
        ("token", {"id": 1, "model": 2}, "model must be less than 2, got 2"),
        ("vocabulary", {"kind": "verb"}, "kind must be one of '', 'byte', 'stop word', 'merge', 'phrase', 'special'"),
        ("vocabulary", {"least": "x"}, "least must be an integer of at least 0, got 'x'"),
        ("vocabulary", {"start": "9" * 5000}, "start must be an integer of at least 0"),
        ("vocabulary", {"corpus": "unknown"}, "the text unknown is no longer cached; encode it again"),
        ("chunks", {"file": 1}, "file must be less than 1, got 1"),
    ],
)
def test_wrong_questions(client: TestClient, path: str, parameters: dict[str, Any], error: str) -> None:
    response = client.get(f"/api/{path}", params=parameters)
    assert response.status_code == 400 and response.json()["error"].startswith(error)


@pytest.mark.parametrize(
    ("body", "merges", "status", "error"),
    [
        (b"a\xff", None, 400, "the text is invalid UTF-8 at byte 1"),
        (b"a", "-1", 400, "merges must be an integer of at least 0, got '-1'"),
    ],
    ids=["invalid", "negative"],
)
def test_wrong_texts(client: TestClient, body: bytes, merges: str | None, status: int, error: str) -> None:
    response = post(client, body, merges)
    assert (response.status_code, response.json()["error"]) == (status, error)


def test_the_limit_is_the_same_for_all_characters(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """In JSON, a control character would have six bytes."""
    monkeypatch.setattr(server, "MAX_TEXT", 1 << 20)
    monkeypatch.setattr(api, "MAX_TOKENS", 0)
    assert post(client, b"\0" * (1 << 20)).status_code == 200
    response = post(client, b"\0" * ((1 << 20) + 1))
    assert (response.status_code, response.json()["error"]) == (413, "the text must have at most 1 MiB")


def test_a_form_of_another_site_cannot_send_text(client: TestClient) -> None:
    response = client.post("/api/encode", content=b"a", headers={"content-type": "text/plain"})
    assert response.status_code == 415
    assert client.get("/api/encode").status_code == 405


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "evil.example:8765"},
        {"host": "127.0.0.1.evil.example"},
        {"host": "10.0.0.7:8765"},
        {"host": ""},
        {"host": "["},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": "https://127.0.0.1:8765"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_requests_of_other_sites_are_refused(client: TestClient, headers: dict[str, str]) -> None:
    for path in ("/", "/api/workspace", "/static/main.js", "/nowhere"):
        response = client.get(path, headers=headers)
        assert response.status_code == 403 and "models" not in response.text
        assert "access-control-allow-origin" not in response.headers


def test_requests_of_the_page_are_answered(client: TestClient) -> None:
    for host in ("127.0.0.1:8765", "localhost:8765", "[::1]:8765"):
        headers = {"host": host, "origin": f"http://{host}", "sec-fetch-site": "same-origin"}
        assert client.get("/api/workspace", headers=headers).status_code == 200


def test_other_sites_can_link_to_the_page_only(client: TestClient) -> None:
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert client.get("/", headers=link).status_code == 200
    assert client.get("/", headers=link | {"sec-fetch-dest": "iframe"}).status_code == 403
    assert client.get("/", headers=link | {"host": "evil.example"}).status_code == 403
    assert client.get("/api/workspace", headers=link).status_code == 403


def test_another_address_on_request() -> None:
    with TestClient(application(Workspace(), "0.0.0.0"), base_url="http://10.0.0.7:8765") as client:
        assert client.get("/").status_code == 200
        assert client.get("/", headers={"host": "evil.example"}).status_code == 403
    with TestClient(application(Workspace(), "10.0.0.7", "Box.local"), base_url="http://box.local:8765") as client:
        assert client.get("/").status_code == 200


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "0.0.0.0"])
def test_printed_addresses_are_answered(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[Any] = []
    monkeypatch.setattr(socket, "gethostname", lambda: "Box")
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: served.append(self.config.app))
    with server.listen(host, 0) as listening:
        server.serve(Workspace(), listening, host)
        printed = server.addresses(listening)
    if host == "0.0.0.0":
        assert [re.sub(":[0-9]+/$", "", url) for url in printed] == ["http://127.0.0.1", "http://Box"]
    for url in [*printed, f"http://{host}:8765/"]:
        assert TestClient(served[0], base_url=url).get("/").status_code == 200


def test_headers(client: TestClient) -> None:
    for path in ("/", "/static/main.js", "/api/workspace", "/nowhere"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "script-src 'self';" in policy and "unsafe" not in policy
    assert client.get("/static/main.js").headers["content-type"].startswith("text/javascript")


@pytest.mark.parametrize("path", ["/static/../server.py", "/static/%2e%2e/server.py", "/static/..%2fserver.py"])
def test_only_the_files_of_the_page_are_served(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


def test_counts_of_texts_are_forgotten(tmp_path: Path) -> None:
    space = Workspace({"mine": OTHER})
    (tmp_path / "data.txt").write_text("to be")
    space.count_data([str(tmp_path)])
    keys = [space.compare(str(n))[0] for n in range(REMEMBERED + 2)]
    assert [*space.token_counts] == ["data", *keys[2:]]


def test_counts_of_data_have_all_ids(tmp_path: Path) -> None:
    """Models with phrases encode documents, and the last ids may not occur."""
    model = Model(r" ?\w+", {(32, 98): 256}, phrases={(97, 256): 257}, special_tokens={"<e>": 300})
    space = Workspace({"phrases": Tokenizer(model)}, text="b b")
    (tmp_path / "data.txt").write_text("b")
    space.count_data([str(tmp_path)])
    rows = api.vocabulary(space, {"corpus": "data", "sort": "count", "descending": "1", "rows": "500"})["rows"]
    assert {row["id"]: row["count"] for row in rows if row["count"]} == {98: 1}
    assert len(rows) == 259
    page = static_page.page(space)
    data = json.loads(re.search('id="data">(.*?)</script>', page, re.DOTALL)[1])  # type: ignore[index]
    assert data["workspace"]["has_data"] and data["tokens"][0]["256"]["count"] == 0, "counts are those of the data"


def test_scripts_have_unique_names() -> None:
    """A static page joins all modules into one. Text is never parsed as markup, and nothing is fetched."""
    code = static_page.script()
    names = re.findall(r"^(?:async )?(?:const|let|function|class) (?:\{[^}]*\}|(\w+))", code, re.MULTILINE)
    assert len(names) > 50 and len(names) == len({*names})
    for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "http://", "https://"):
        assert forbidden not in code.replace("http://www.w3.org/2000/svg", "")
    for path in STATIC.glob("*.js"):
        code = path.read_text(encoding="utf-8")
        for imported, module in re.findall(r'^import \{([^}]*)\} from "\./(\w+)\.js";$', code, re.MULTILINE):
            source = (STATIC / f"{module}.js").read_text(encoding="utf-8")
            for name in imported.split(","):
                assert re.search(rf"^export (?:async )?(?:function|class|const) {name.strip()}\b", source, re.MULTILINE)
                assert code.count(name.strip()) > 1, f"{path.name} does not use {name}"


def luminance(color: str) -> float:
    channels = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_contrast(theme: int) -> None:
    """Text has at least the contrast 4.5, and signs 3, as WCAG AA demands."""
    style = (STATIC / "style.css").read_text(encoding="utf-8")
    pairs = re.findall(r"--(\w+): light-dark\((#\w{6}), (#\w{6})\)", style)
    color = {name: luminance(values[theme]) for name, *values in pairs}

    def contrast(one: str, two: str) -> float:
        low, high = sorted([color[one], color[two]])
        return (high + 0.05) / (low + 0.05)

    for behind in ("page", "surface"):
        assert min(contrast(text, behind) for text in ("ink", "muted", "accent", "mark")) >= 4.5
        assert contrast("edge", behind) >= 3, "of fields"
    for token in ("c0", "c1", "c2", "c3", "c4"):
        assert contrast("ink", token) >= 7 and contrast("mark", token) >= 3 and contrast("muted", token) >= 3
