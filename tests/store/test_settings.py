"""Settings: environment over file over defaults; errors name file, key and what is known, never a value."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from store.settings import Settings, SettingsError, check_names, load_settings, public

PLANTED = "pl4nted-s3cret"

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes a memtrend.toml and stands in its folder."""
    monkeypatch.chdir(tmp_path)

    def written(text: str) -> Path:
        path = tmp_path / "memtrend.toml"
        path.write_text(text)
        return path

    return written


def _refused(path: Path | None = None) -> str:
    with pytest.raises(SettingsError) as caught:
        load_settings(path)
    shown = "".join(traceback.format_exception(caught.value))
    assert PLANTED not in shown
    return str(caught.value)


def test_without_a_file_the_defaults_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file: the embedded backends with their floors, nightly at three, a record in the working folder."""
    monkeypatch.chdir(tmp_path)
    settings = load_settings()
    assert settings.source is None
    assert list(settings.backends) == ["keyword", "dense", "hybrid", "nothing", "everything"]
    nightly = settings.schedules["nightly"]
    assert (nightly.cron, nightly.suites, nightly.backends) == (
        "0 3 * * *",
        ["golden", "holdout", "contract"],
        ["*"],
    )
    assert settings.database.url.get_secret_value() == f"sqlite:///{tmp_path / 'memtrend.db'}"
    assert (settings.limits.timeout, settings.limits.diagnose.max_cases) == (30.0, 50)
    assert (settings.dashboard.host, settings.dashboard.writes, settings.api.token) == (
        "127.0.0.1",
        None,
        None,
    )


def test_a_file_replaces_default_sections(write: Write) -> None:
    """Backends in the file are all the backends there are; what it does not mention keeps its default."""
    write('[backends.mine]\ntype = "keyword"\n[limits]\nattempts = 5\n')
    settings = load_settings()
    assert settings.source is not None
    assert list(settings.backends) == ["mine"]
    assert list(settings.schedules) == ["nightly"]
    assert (settings.limits.attempts, settings.limits.timeout) == (5, 30.0)


def test_the_config_variable_names_the_file(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """$MEMTREND_CONFIG names the file, and a path given by hand beats it; a named file must be there."""
    path = write('[dashboard]\ntitle = "by variable"\n').rename(tmp_path / "other.toml")
    monkeypatch.setenv("MEMTREND_CONFIG", str(path))
    assert load_settings().dashboard.title == "by variable"
    assert load_settings(write('[dashboard]\ntitle = "by hand"\n')).dashboard.title == "by hand"
    path.unlink()
    assert "other.toml: no such file; memtrend init writes one" in _refused()


def test_the_environment_beats_the_file(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables override single keys, of the file and of default sections, nested ones and lists too."""
    write('[limits]\ntimeout = 5\n[backends.mine]\ntype = "keyword"\nowner = "a"\n')
    monkeypatch.setenv("MEMTREND_LIMITS__TIMEOUT", "7.5")
    monkeypatch.setenv("MEMTREND_LIMITS__DIAGNOSE__MAX_CASES", "3")
    monkeypatch.setenv("MEMTREND_BACKENDS__MINE__OWNER", "b")
    monkeypatch.setenv("MEMTREND_SCHEDULES__NIGHTLY__SUITES", '["smoke"]')
    monkeypatch.setenv("MEMTREND_EMBEDDER", "minilm")
    settings = load_settings()
    assert (settings.limits.timeout, settings.limits.diagnose.max_cases) == (7.5, 3)
    assert (settings.backends["mine"].type, settings.backends["mine"].owner) == ("keyword", "b")
    assert settings.schedules["nightly"].suites == ["smoke"]
    assert settings.schedules["nightly"].cron == "0 3 * * *"
    assert settings.embedder == "minilm"


def test_paths_are_meant_from_the_file(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative paths are of the configuration's folder, wherever memtrend is started."""
    path = write(
        '[database]\nurl = "sqlite:///data/m.db"\n[suites.mine]\npath = "suites/mine.jsonl"\n'
        '[backends.b]\ntype = "keyword"\ndirectory = "store"\n'
    )
    monkeypatch.chdir("/")
    settings = load_settings(path)
    assert settings.database.url.get_secret_value() == f"sqlite:///{tmp_path / 'data/m.db'}"
    assert settings.suites["mine"].path == tmp_path / "suites/mine.jsonl"
    assert settings.backends["b"].directory == tmp_path / "store"


def test_a_backend_keeps_what_is_not_ours_verbatim(write: Write) -> None:
    """The vendor's configuration and the adapter's own keys pass through unchanged."""
    write('[backends.b]\ntype = "mem0"\ninfer = true\n[backends.b.config.LLM]\ntopK = 3\n')
    backend = load_settings().backends["b"]
    assert backend.options == {"infer": True}
    assert backend.config == {"LLM": {"topK": 3}}


# Secrets


def test_a_secret_may_stand_in_a_file(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """KEY_file gives the secret without blanks around it, and ..._FILE beats what the file says."""
    (tmp_path / "token").write_text("from-the-file\n")
    (tmp_path / "other").write_text("from-the-variable\n")
    write('[api]\ntoken_file = "token"\n')
    settings = load_settings()
    assert settings.api.token is not None
    assert settings.api.token.get_secret_value() == "from-the-file"
    write('[api]\ntoken = "written"\n')
    monkeypatch.setenv("MEMTREND_API__TOKEN_FILE", str(tmp_path / "other"))
    settings = load_settings()
    assert settings.api.token is not None
    assert settings.api.token.get_secret_value() == "from-the-variable"


def test_both_forms_in_one_source_are_an_error(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key and its file together are refused, whichever source has both."""
    write(f'[api]\ntoken = "{PLANTED}"\ntoken_file = "x"\n')
    assert "memtrend.toml: api.token_file: given together with token" in _refused()
    write("")
    monkeypatch.setenv("MEMTREND_API__TOKEN", PLANTED)
    monkeypatch.setenv("MEMTREND_API__TOKEN_FILE", "x")
    assert "environment: MEMTREND_API__TOKEN_FILE: given together with token" in _refused()


@pytest.mark.parametrize(("content", "said"), [(None, "cannot be read (No such"), ("  \n", "is empty")])
def test_a_secrets_file_must_hold_something(
    write: Write, tmp_path: Path, content: str | None, said: str
) -> None:
    """A missing or empty file of a secret stops, and its name is not shown: it may be the secret itself."""
    if content is not None:
        (tmp_path / PLANTED).write_text(content)
    write(f'[api]\ntoken_file = "{PLANTED}"\n')
    assert f"memtrend.toml: api.token_file: the file it names {said}" in _refused()


def test_placeholders_are_filled_in(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """${env:X} and ${file:P} inside strings of a backend are replaced, at any depth; others stay."""
    (tmp_path / "key").write_text("k-1\n")
    monkeypatch.setenv("VENDOR_KEY", "k-2")
    write(
        'embedder = { url = "http://host", key = "${env:VENDOR_KEY}" }\n'
        '[backends.b]\ntype = "mem0"\nheader = "Key ${file:key}"\n'
        '[backends.b.config]\nlist = [{ key = "${env:VENDOR_KEY}" }]\nplain = "${HOME}"\n'
    )
    settings = load_settings()
    assert settings.embedder == {"url": "http://host", "key": "k-2"}
    assert settings.backends["b"].options == {"header": "Key k-1"}
    assert settings.backends["b"].config == {"list": [{"key": "k-2"}], "plain": "${HOME}"}


def test_a_missing_placeholder_names_its_key(write: Write) -> None:
    """What a placeholder lacks is told by key, all at once."""
    write(
        '[backends.b]\ntype = "mem0"\n[backends.b.config.llm]\n'
        'keys = ["${env:NOT_SET_HERE}"]\nfile = "${file:gone}"\n'
    )
    said = _refused()
    assert (
        "memtrend.toml: backends.b.config.llm.keys.0: the environment variable NOT_SET_HERE is not set"
        in said
    )
    assert "memtrend.toml: backends.b.config.llm.file: the file it names cannot be read" in said


def test_public_hides_every_secret(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is shown and stored holds no secret, however it got in, and all that is none."""
    (tmp_path / "secret").write_text(PLANTED)
    monkeypatch.setenv("VENDOR_KEY", PLANTED)
    write(
        f'embedder = {{ url = "http://u:{PLANTED}@host/v1?api_key={PLANTED}&x=1", model = "m" }}\n'
        '[api]\ntoken_file = "secret"\n'
        f'[backends.b]\ntype = "http"\nAuthorization = "Bearer {PLANTED}"\nuser_password = "{PLANTED}"\n'
        f'[backends.b.config]\napiKey = "{PLANTED}"\nother = "${{env:VENDOR_KEY}}"\nmax_tokens = 3\n'
        f'secrets = {{ a = "{PLANTED}" }}\nheaders = {{ X-Api-Key = "{PLANTED}" }}\n'
    )
    settings = load_settings()
    shown = public(settings)
    assert PLANTED not in repr(shown)
    assert PLANTED not in repr(settings)
    backend = shown["backends"]["b"]
    assert backend["config"] == {
        "apiKey": "***",
        "other": "${env:VENDOR_KEY}",
        "max_tokens": 3,
        "secrets": "***",
        "headers": {"X-Api-Key": "***"},
    }
    assert shown["embedder"] == {"url": "http://u:***@host/v1?api_key=***&x=1", "model": "m"}
    assert shown["api"]["token"] == "***"
    assert shown["limits"]["timeout"] == 30.0
    assert settings.backends["b"].config["other"] == PLANTED


# Errors


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f'apikey = "{PLANTED}"', "apikey: unknown key; known: alerts, api, backends, channels, dashboard"),
        (f'[api]\ntokn = "{PLANTED}"', "api.tokn: unknown key; known: token, token_file"),
        (f'[limits]\ntimeout = "{PLANTED}"', "limits.timeout: should be a valid number"),
        ("[limits]\nmax_error_rate = 2", "limits.max_error_rate: should be less than"),
        (f'limits = "{PLANTED}"', "limits: should be a table"),
        (f'[limits.diagnose]\nmax = "{PLANTED}"', "limits.diagnose.max: unknown key; known: max_cases"),
        (f'[dashboard]\nport = "{PLANTED}"', "dashboard.port: should be a valid integer"),
        (f"[api]\ntoken = ['{PLANTED}']", "api.token: should be a valid string"),
        ('[api]\ntoken = ""', "api.token: should not be empty"),
        (f'[backends.b]\nowner = "{PLANTED}"', "backends.b.type: missing"),
        (f'[backends.b]\ntype = ["{PLANTED}"]', "backends.b.type: should be a valid string"),
        (f'[backends."a b"]\ntype = "{PLANTED}"', "backends.a b: a name is letters or digits first"),
        (f'[backends]\nb = "{PLANTED}"', "backends.b: should be a table"),
        (f'[suites.s]\npaths = "{PLANTED}"', "suites.s.paths: unknown key; known: bars, citation, confirm"),
        ('[schedules.n]\ncron = "0 3 * * *"\nsuites = []', "schedules.n.suites: should not be empty"),
        (f'[schedules.n]\ncron = "{PLANTED}"\nsuites = ["a"]', "schedules.n.cron: 1 fields"),
        (f"embedder = ['{PLANTED}']", "embedder: should be"),
        (f'x = "{PLANTED}', "not TOML:"),
    ],
)  # fmt: skip
def test_errors_name_file_key_and_known_values(write: Write, text: str, said: str) -> None:
    """A wrong key or value stops with file, key and what is known, and never shows a value."""
    write(text)
    assert f"memtrend.toml: {said}" in _refused()


def test_all_errors_are_told_at_once(write: Write) -> None:
    """One stop tells every mistake of the file."""
    write('[limits]\ntimeout = 0\nattempts = "x"\n[dashboard]\nprt = 1\n')
    assert len(_refused().splitlines()) == 3


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("MEMTREND_APIS__TOKEN", PLANTED, "unknown; known: MEMTREND_CONFIG"),
        ("MEMTREND_TIMEOUT", PLANTED, "unknown"),
        ("MEMTREND_LIMITS__TIMEOT", PLANTED, "unknown key; known: attempts"),
        ("MEMTREND_LIMITS__TIMEOUT", PLANTED, "should be a valid number"),
        ("MEMTREND_LIMITS", PLANTED, "not JSON"),
        ("MEMTREND_API__TOKEN", "", "should not be empty"),
        ("MEMTREND_BACKENDS__X__CONFIG__API_KEY", PLANTED, "set a vendor's config in the file"),
    ],
)  # fmt: skip
def test_wrong_variables_stop(
    write: Write, monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    """An unknown or malformed variable stops by its name, and its value is not shown."""
    write("")
    monkeypatch.setenv(name, value)
    assert f"environment: {name}: {said}" in _refused()


@pytest.mark.parametrize(
    ("cron", "said"),
    [
        ("0 9 * * 0", "0 is sun to cron; known: mon, tue"),
        ("0 9 * * 1-5", "1 is mon to cron"),
        ("0 9 * * 7", "7 is sun to cron"),
        ("0 9 * * */2", "2 is tue to cron"),
        ("60 9 * * *", "minute: * or 0 to 59"),
        ("0 24 * * *", "hour: * or 0 to 23"),
        ("0 9 0 * *", "day of month: * or 1 to 31"),
        ("0 9 * 13 *", "month: * or 1 to 12 or jan"),
        ("0 9 * * fri-mon", "weekday: * or mon"),
        ("0 9 * * monday", "weekday: * or mon"),
        ("*/0 9 * * *", "minute:"),
        ("0 9 * *", "4 fields instead of five"),
        ("@daily", "1 fields instead of five"),
    ],
)
def test_bad_cron_lines_are_refused(write: Write, cron: str, said: str) -> None:
    """Weekdays by digit are refused with the name to write, and so is all that could not fire."""
    write(f'[schedules.n]\ncron = "{cron}"\nsuites = ["a"]')
    assert f"schedules.n.cron: {'write weekdays by name: ' if 'to cron' in said else ''}{said}" in _refused()


@pytest.mark.parametrize(
    "cron",
    ["0 3 * * *", "*/15 0-6 1,15 jan-mar mon-fri", "5,35 */2 * 2 SUN", "0 9 * * sat,sun", "10-50/20 3 * * *"],
)
def test_good_cron_lines_are_taken(write: Write, cron: str) -> None:
    """Lists, ranges, steps and names are fine, in whatever case."""
    write(f'[schedules.n]\ncron = "{cron}"\nsuites = ["a"]')
    assert load_settings().schedules["n"].cron == cron


def _check(settings: Settings) -> None:
    check_names(settings, {"keyword": (), "dense": {"speed"}}, {"golden", "smoke"}, {"wordllama"})


def test_names_that_lead_nowhere_stop(write: Write) -> None:
    """An unknown type, embedder, suite or backend is told with what is known, and not repeated."""
    write(
        f'embedder = "{PLANTED}"\n[backends.b]\ntype = "{PLANTED}"\nembedder = "{PLANTED}"\n'
        f'[schedules.n]\ncron = "0 3 * * *"\nsuites = ["golden", "{PLANTED}"]\nbackends = ["{PLANTED}"]\n'
        '[suites.mine]\npath = "mine.jsonl"\n'
    )
    with pytest.raises(SettingsError) as caught:
        _check(load_settings())
    lines = [line.split("memtrend.toml: ")[1] for line in str(caught.value).splitlines()]
    assert lines == [
        "embedder: unknown name; known: wordllama",
        'backends.b.type: unknown name; known: dense, keyword or "package.module:Class"',
        "backends.b.embedder: unknown name; known: wordllama",
        "schedules.n.suites: unknown name; known: golden, mine, smoke",
        "schedules.n.backends: unknown name; known: *, b",
    ]


def test_names_that_are_known_pass(write: Write) -> None:
    """Known names, all backends by a star, an embedder by URL, and a class of the team's own are fine."""
    write(
        'embedder = { url = "http://host", model = "m" }\n[backends.b]\ntype = "ours:Memory"\n'
        '[suites.mine]\npath = "m"\n[schedules.n]\ncron = "0 3 * * *"\nsuites = ["mine", "golden"]\n'
    )
    _check(load_settings())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('tpye = "keyword"', "backends.b.type: missing; is 'tpye' meant to be it?"),
        ('kind = "keyword"', "backends.b.type: missing"),
    ],
)
def test_a_missing_key_names_the_one_that_was_meant(write: Write, text: str, said: str) -> None:
    """A misspelt key is named beside the one that is missing because of it."""
    write(f"[backends.b]\n{text}\n")
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert str(caught.value).split("memtrend.toml: ")[1] == said


def test_an_option_that_a_type_does_not_take_stops(write: Write) -> None:
    """A key that is neither every backend's nor its type's is told with those that are, without its value."""
    write(
        f'[backends.b]\ntype = "keyword"\ndirectry = "{PLANTED}"\n[backends.d]\ntype = "dense"\nspeed = 3\n'
        "[schedules]\n"
    )
    with pytest.raises(SettingsError) as caught:
        _check(load_settings())
    (line,) = str(caught.value).splitlines()
    known = "config, control, directory, embedder, owner, package, python, type, with"
    assert line.split("memtrend.toml: ")[1] == f"backends.b.directry: unknown key; known: {known}"
