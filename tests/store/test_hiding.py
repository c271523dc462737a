"""What looks like a secret is hidden, what is none is shown, and no error tells what was resolved."""

from __future__ import annotations

from typing import Any

import pytest

from store import hiding
from store.hiding import hidden, is_secret_key, redacted, remember_secret, remember_secrets

PLANTED = "pl4nted-s3cret"


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one test remembers is no other's."""
    monkeypatch.setattr(hiding, "_remembered", set())


@pytest.mark.parametrize(
    "key",
    [
        *("password", "db_password_2", "passwd", "userPwd", "passphrase", "client_secret", "secrets"),
        *("token", "tokens", "accessToken", "authtoken", "token_value", "apikey", "openai_api_keys"),
        *("X-Api-Key", "access_key", "aws_access_key_id", "private_key", "private_key_pem", "session_key"),
        *("auth", "proxy_auth", "oauth", "Authorization", "credentials", "google_credential_json", "pat"),
        *("github_pat", "pem", "dsn", "sentry_dsn", "connection_string", "conn_str", "cookie", "Set-Cookie"),
        *("key", "jwt", "sig"),
    ],
)  # fmt: skip
def test_keys_that_name_secrets(key: str) -> None:
    """A word for a secret anywhere in a key makes its value one."""
    assert is_secret_key(key)
    assert hidden({key: PLANTED}) == {key: "***"}


@pytest.mark.parametrize(
    "key",
    [
        *("max_tokens", "maxTokens", "max_output_tokens", "total_tokens", "token_limit", "tokenizer"),
        *("pad_token", "eos_token", "embedding_dims", "path", "pattern", "keyword", "author", "auth_type"),
        *("primary_key", "text_key", "token_type", "compatible", "signal", "bypass_cache", "secret_name"),
    ],
)  # fmt: skip
def test_keys_that_do_not(key: str) -> None:
    """Counts of tokens, names of fields and the like are shown."""
    assert hidden({key: "shown"}) == {key: "shown"}


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (f"host=db password={PLANTED} port=5", "host=db password=*** port=5"),
        (f"--token={PLANTED}", "--token=***"),
        (f'{{"api_key": "{PLANTED}", "k": 3}}', '{"api_key": "***", "k": 3}'),
        (f"https://h/v1?key={PLANTED}&n=1", "https://h/v1?key=***&n=1"),
        (f"https://u:{PLANTED}@host/v1", "https://u:***@host/v1"),
        (f"https://{PLANTED}@host/v1", "https://***@host/v1"),
        (f"https://{PLANTED}:@host/v1", "https://***:@host/v1"),
        (f"redis://:{PLANTED}@host", "redis://:***@host"),
        (f"Bearer {PLANTED}", "Bearer ***"),
        (f"sent Authorization=Bearer {PLANTED}", "sent Authorization=Bearer ***"),
        ("use ghp_0123456789abcdefABCDEF here", "use *** here"),
        ("sk-proj-0123456789", "***"),
        ("eyJhbGciOiJIUzI1.eyJzdWIiOiIx.c2lnbmF0dXJl", "***"),
        ("-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n", "***\n"),
        (["run", "--token", PLANTED, "--verbose"], ["run", "--token", "***", "--verbose"]),
        ({"secrets": [PLANTED, PLANTED]}, {"secrets": "***"}),
        ({"tokens": [PLANTED]}, {"tokens": "***"}),
        ({"password": 123456}, {"password": "***"}),
        ({"api_key": "", "auth": True, "tokens": 512}, {"api_key": "", "auth": True, "tokens": 512}),
        ("max_tokens=30 and top_k=3", "max_tokens=30 and top_k=3"),
        ("api.token: must not be empty; KEY=VALUE", "api.token: must not be empty; KEY=VALUE"),
        ("http://127.0.0.1:8000/v1 at 3:4", "http://127.0.0.1:8000/v1 at 3:4"),
    ],
)
def test_values_that_look_like_secrets(value: Any, shown: Any) -> None:
    """A secret inside a value is hidden where it stands; the rest of the value is shown."""
    assert hidden(value) == shown


def test_a_password_of_a_url_is_hidden_as_it_was() -> None:
    """What had to be quoted to stand in a URL is hidden also where a server tells it plainly."""
    remember_secrets("postgresql://ann:not%2Fso%3Asecret@host/record")
    assert redacted("refused: not/so:secret, not%2Fso%3Asecret") == "refused: ***, ***"


def test_what_is_hidden_is_remembered() -> None:
    """Whatever a configuration hides, no text tells, in whatever form it is written there."""
    odd = 'a"b\\c d%é'
    remember_secrets({"a": [{"apiKey": odd}], "url": "https://u:p4ssw@h", "Authorization": "Token abcdef"})
    texts = [f"<{odd}>", f"{odd!r}", "a%22b%5Cc%20d%25%C3%A9", 'a\\"b\\\\c d%\\u00e9', "p4ssw", "abcdef"]
    for text in texts:
        assert not set(redacted(f"refused: {text}").split()) - {"refused:", "***", "<***>", "'***'"}


def test_harmless_words_are_told() -> None:
    """A secret too short to be told from a word hides no word, and None and flags are no secrets."""
    remember_secret("no")
    remember_secrets({"auth": {"on": True, "by": None}})
    assert redacted("True, None: nothing is known") == "True, None: nothing is known"
