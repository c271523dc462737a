"""What the section of an `http` backend may say: templates, paths, and what is told of mistakes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.backend import BackendConfig, BackendError, open_backend
from collectors.backends import http as adapter
from collectors.backends.base import well_formed
from collectors.backends.http_words import filled, found, parsed, path_of, placeholders


class TestConfiguration:
    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"url": "ftp://h"}, "url: URL scheme should be 'http' or 'https'"),
            ({"timeout": 0}, "timeout: Input should be greater than 0"),
            ({"rate": -1}, "rate: Input should be greater than 0"),
            ({"capabilities": ["amend"]}, "capabilities"),
            ({"config": {"a": 1}}, "config: unknown key; known: url,"),
            ({"requests": {"add": {}}}, "requests.add: unknown key; known: remember, recall, reset, amend,"),
            (
                {"requests": {"recall": {"url": "/x"}}},
                "requests.recall.url: unknown key; known: path, method, body",
            ),
            ({"requests": {"count": {"body": {}}}}, "requests.count.path: Field required"),
            ({"requests": {"recall": {"path": "search"}}}, "requests.recall.path"),
            ({"requests": {"recall": {"path": "/search?x=1"}}}, "requests.recall.path"),
            ({"requests": {"recall": {"method": "LOOK"}}}, "requests.recall.method"),
            (
                {"requests": {"recall": {"body": {"q": "{query}", "u": "{namespace} {usr}"}}}},
                "requests.recall: unknown placeholder {usr}; known: {cursor}, {domains}, {k}, {namespace},",
            ),
            (
                {"requests": {"reset": {"body": {"user_id": "{user}"}}}},
                "requests.reset: must name {namespace}",
            ),
            (
                {"requests": {"remember": {"body": {"user": "{namespace}"}}}},
                "requests.remember: must name {text} or {memories}",
            ),
            (
                {"requests": {"forget": {"path": "/memories/{id}"}}},
                "requests.forget: must name {namespace} or {stored}",
            ),
            (
                {"requests": {"remember": {"body": {"n": "{namespace}", "all": "{memories}"}}}},
                "{memories} in the body and `each` go together",
            ),
            ({"requests": {"remember": {"each": {"text": "{text}"}}}}, "`each` go together"),
            ({"answers": {"txt": "a"}}, "answers.txt: unknown key; known: hits, id, text, score"),
            ({"answers": {"text": "a..b"}}, "answers.text: not a path: names joined by dots"),
        ],
    )
    def test_what_is_wrong_is_told_when_opened(self, options: dict[str, Any], said: str) -> None:
        """Each mistake is a permanent error that names the key, and those there are."""
        with pytest.raises(BackendError) as raised:
            open_backend(BackendConfig("ours", "http", {"url": "http://h", **options}))
        assert raised.value.permanent
        assert said in str(raised.value)

    def test_a_name_in_a_query_may_sound_secret(self) -> None:
        """What is filled in is no secret, nor is a number, whatever they are called."""
        query = {"key": "{namespace}", "token": 100, "keyword": "on", "q": "{query}"}
        open_backend(
            BackendConfig("ours", "http", {"url": "http://h", "requests": {"recall": {"query": query}}})
        )

    def test_all_mistakes_are_told_at_once(self) -> None:
        """Nobody has to start five times to find five mistakes."""
        options = {
            "tokn": "x",
            "timeout": -1,
            "answers": {"hits": "[", "score": "a b"},
            "requests": {"reset": {"body": {"all": "{everything}"}}, "wipe": {}},
        }
        with pytest.raises(BackendError) as raised:
            open_backend(BackendConfig("ours", "http", options))
        told = str(raised.value)
        for place in ("url", "tokn", "timeout", "answers.hits", "answers.score", "requests.wipe"):
            assert f" {place}: " in told
        assert (
            "requests.reset: unknown placeholder {everything}; known: {namespace}, {user}; must name" in told
        )

    def test_what_is_documented_can_be_opened(self) -> None:
        """Each section shown for it in docs/backends.md is accepted as it stands there."""
        page = Path(__file__).parents[3] / "docs" / "backends.md"
        section = page.read_text(encoding="utf-8").split("\n## `http`")[1].split("\n## ")[0]
        blocks = re.findall(r"(?s)```toml\n(.*?)```", section)
        assert len(blocks) == 2
        for block in blocks:
            for name, options in tomllib.loads(block)["backends"].items():
                open_backend(BackendConfig(name, options.pop("type"), options)).close()

    def test_no_module_of_ours_hides_the_standard_one(self) -> None:
        """A worker, which is started as a file beside this adapter, still imports the standard library's
        `http`."""
        file = Path(adapter.__file__).with_name("handed.py")
        code = f"import runpy, sys; print(sys.path); runpy.run_path({str(file)!r})"
        for command in (["-I", str(file)], ["-I", "-c", code]):
            subprocess.run([sys.executable, *command], check=True, capture_output=True, timeout=60)


TEXT = st.text(st.characters(codec=None), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT, lambda inner: st.lists(inner, max_size=3), max_leaves=5
)
LITERAL = st.text(st.characters(codec="utf-8", exclude_characters="{}"), max_size=10)


class TestWords:
    @given(st.lists(st.tuples(LITERAL, TEXT), min_size=1, max_size=4), LITERAL)
    def test_texts_are_put_where_they_belong(self, parts: list[tuple[str, str]], end: str) -> None:
        """Whatever texts stand in for placeholders, braces included, each appears once and as it is."""
        values = {f"p{n}": value for n, (_, value) in enumerate(parts)}
        template = "".join(f"{literal}{{p{n}}}" for n, (literal, _) in enumerate(parts)) + end
        assert placeholders(template) == values.keys()
        whole = "".join(literal + value for literal, value in parts) + end
        assert filled({"key": ["x" + template]}, values) == {"key": ["x" + whole]}

    @given(JSON.filter(lambda value: value is not None))
    def test_a_placeholder_alone_keeps_its_type(self, value: Any) -> None:
        """A number stays a number, a list a list, down to what is within."""
        assert filled({"a": ["{v}"], "b": {"c": "{v}"}}, {"v": value}) == {"a": [value], "b": {"c": value}}

    @given(TEXT.filter(bool), TEXT.filter(bool))
    def test_a_path_keeps_its_shape(self, one: str, other: str) -> None:
        """No name adds, ends or leaves a segment of a path, and each comes out as it went in."""
        path = path_of("/a/{one}/b/x-{other}", {"one": one, "other": other})
        assert httpx.URL(f"http://h{path}").raw_path.decode() == path
        _, a, first, b, second = path.split("/")
        assert (a, b) == ("a", "b")
        assert unquote(first) == well_formed(one)
        assert unquote(second) == f"x-{well_formed(other)}"

    @given(JSON)
    def test_a_template_without_placeholders_stays(self, template: Any) -> None:
        """What holds no braces and no nulls is sent as it is written."""
        plain = json.loads(json.dumps(template).replace("{", "(").replace("}", ")").replace("null", "0"))
        assert filled(plain, {}) == plain
        assert placeholders(plain) == set()

    def test_braces_can_be_written(self) -> None:
        """Doubled braces stand for the text, and braces around anything else for themselves."""
        template = "{{k}} {k} { k } {} {k-1} {{k}"
        assert filled(template, {"k": 5}) == "{k} 5 { k } {} {k-1} {5"
        assert placeholders(template) == {"k"}

    def test_what_has_nothing_to_say_is_left_out(self) -> None:
        """A key or an entry of one placeholder goes with its null, and a longer text has a gap."""
        template = {"a": "{v}", "b": ["{v}", 1], "c": "x{v}", "d": {"e": "{v}"}}
        assert filled(template, {"v": None}) == {"b": [1], "c": "x", "d": {}}

    @pytest.mark.parametrize(
        ("path", "expected"),
        [
            ("results", [[{"id": 1, "tags": ["x", "y"]}, {"id": 2}, {"id": None}]]),
            ("results[*].id", [1, 2]),
            ("results[0].tags[1]", ["y"]),
            ("results[*].tags[*]", ["x", "y"]),
            ("results[9].id", []),
            ("nested.deep.er", ["here"]),
            ("nested.deep[0]", []),
            ("nested[*]", []),
            ("x-y.ü", []),
            ("missing|nested.deep.er", ["here"]),
            ("missing | none | results[1].id", [2]),
            ("missing", []),
            ("$.nested.deep.er", ["here"]),
            ("$", None),
        ],
    )
    def test_paths_lead_into_answers(self, path: str, expected: list[Any] | None) -> None:
        """Names, places, each of a list, the first way that leads anywhere; what is not there is nothing."""
        answer = {
            "results": [{"id": 1, "tags": ["x", "y"]}, {"id": 2}, {"id": None}],
            "nested": {"deep": {"er": "here"}},
            "none": None,
        }
        assert found(path, answer) == ([answer] if expected is None else expected)

    @given(st.text(alphabet="ab.[]*0|$ ", max_size=12), JSON)
    def test_any_path_is_read_or_refused(self, path: str, answer: Any) -> None:
        """A path is refused whatever the answer, or leads somewhere or nowhere in any; never to a null."""
        try:
            parsed(path)
        except ValueError:
            with pytest.raises(ValueError, match="not a path"):
                found(path, answer)
            return
        assert None not in found(path, answer)
