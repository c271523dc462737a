"""What channels are sent: complete, within every limit, signed, and harmless whatever a name says."""

from __future__ import annotations

import contextlib
import hmac
import json
import math
import re
import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine

from collectors.channels import CHANNELS, Refused, open_channel
from collectors.channels.slack import escaped, payload
from collectors.message import daily, digest, harmless, headline, plain_text
from store.alert_kinds import KINDS, AlertKind
from store.alert_life import Step
from store.alert_messages import frozen, sample, thawed
from store.alert_words import Message, message, title
from store.hiding import redacted
from store.sections import AlertsSection, ChannelSection
from store.settings import load_settings
from tests.collectors.incidents import VERDICT, incident
from tests.collectors.slack_server import Answer, SlackServer, problems, running

KEY = "alert 12 step 40 channel team"
BASE = "https://memtrend.example.org"
HOSTILE = (
    "<!channel> <@U024BE7LH> @here <https://evil.example|click> https://evil.example *bold* _it_ ~no~ `code`"
    " :skull: "
    "\u202e\u200fgnp.exe \u2066x\u2069 \x07\x1b[31m & \n> quote"
)
"""No half of a character: the record cannot hold one."""


APPRISE = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")
"""Which apprise imports where Python still has it."""


def told(action: str = "opened", **changes: Any) -> Message:
    it = incident(id=12)
    return message(it, Step(action), KEY, BASE)._replace(**changes)  # type: ignore[arg-type]


def section(url: str, **given: Any) -> ChannelSection:
    return ChannelSection.model_validate({"type": "slack", "url": url, **given})


@pytest.fixture
def slack() -> Iterator[SlackServer]:
    with running() as server:
        yield server


def everything(document: dict[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False)


def test_how_bad_is_said_once() -> None:
    """A kind that is named after its severity does not name it again."""
    for kind, verdict in (("critical", "Critical, open"), ("regression", "Worse (high), open")):
        message = told(kind=kind, severity=KINDS[kind].severity)
        assert f"Verdict: {verdict}\n" in f"{plain_text(message)}\n"


def test_slack_is_told_all_there_is() -> None:
    """An alert says what is wrong, how much, how sure, where, since when, what did it, whose it is, and where
    to read on."""
    shown = everything(payload(told()))
    wanted = [
        f"High: {title(incident())}", "Worse (high), open", "96.1 % → 94.0 %", "−2.1 points", "n 89",
        "4 of 180 cases that had passed in 10 nights failed",
        "Lost*  4 (returned but too low 3, not stored 1)",
        "Gained*  1", "|c1>; <", "1 more", "temporal 3 of 20", "mem0ai 2.0.0 → 2.2.1",
        "A loss of fewer than 4 cases of 180", "2026-11-30 03:12 UTC", "search-team", KEY,
        f"{BASE}/alert?alert=12|Open the alert>", "do=acknowledge|Acknowledge>",
    ]  # fmt: skip
    assert [words for words in wanted if words not in shown] == []
    assert problems(json.dumps(payload(told())).encode()) == []


@pytest.mark.parametrize("action", ["opened", "grew", "resolved", "retracted", "suspected", "acknowledged"])
def test_updates_name_their_alert(action: str) -> None:
    """Whatever becomes of an alert is told with its number and in words of its own."""
    update = told(action, state="open" if action == "opened" else action)
    assert "alert 12 step 40" in everything(payload(update))
    assert len({headline(update), headline(told("opened"))}) == (1 if action == "opened" else 2)


def test_a_drill_is_no_alarm() -> None:
    """The first words of a drill say that nothing is wrong, also where only the notification is read."""
    document = payload(told(drill=True))
    assert document["text"].startswith("DRILL, nothing is wrong")
    assert document["blocks"][0]["text"]["text"].startswith("DRILL, nothing is wrong")


@pytest.mark.parametrize("size", [1, 400])
def test_hostile_names_do_nothing(size: int) -> None:
    """Names that would ring everybody, link, format, turn the line around or fill it come out as text."""
    bad = HOSTILE * size
    it = incident(id=12, backend=bad, cases=(bad, bad, bad, bad), owner=bad, tags=(bad,))
    it = it._replace(suspects=({"sentence": bad},) * 3, context={"failures": {bad: 3}, "tags": [[bad, 1, 2]]})
    sent = message(it, Step("resolved", reason=bad), KEY, BASE)
    worse = f"{bad}\ud800"
    for hostile in (sent, sent._replace(title=worse, evidence=bad, suite=bad, control=bad, texts=(bad,) * 9)):
        document = payload(hostile)
        assert problems(json.dumps(document).encode()) == []
        shown = everything(document)
        assert not {*"\u202e\u200f\u2066\u2069\x07\x1b"} & {*shown}
        assert not any(markup in shown for markup in ("<!channel", "<@U", "@here", "https://evil"))
        shown = everything({**document, "blocks": document["blocks"][1:]})  # in a header nothing is formatted
        shown = re.sub(r"https?://[^|>\"]+", "", shown)
        assert not any(markup in shown for markup in ("*bold*", "_it_", "~no~", "`code`", ":skull:"))


def test_a_link_is_no_button() -> None:
    """Nothing in a message reports a click: a webhook has no app that could answer, so Slack would warn."""
    assert {block["type"] for block in payload(told())["blocks"]} <= {"header", "section", "context"}


def test_hostile_names_do_nothing_in_plain_text() -> None:
    """Where nothing can be escaped, in a mail or behind a service that has markup of its own, the same names
    ring nobody, link to nothing, begin no line and fill no message."""
    bad = HOSTILE * 400
    sent = told(
        title=bad, evidence=bad, owner=bad, suspects=(bad,) * 3, texts=(bad,) * 3, urls={"open": BASE}
    )
    shown = plain_text(sent)
    assert not {*"\u202e\u200f\u2066\u2069\x07\x1b<>"} & {*shown}
    assert not any(markup in shown for markup in ("@here", "https://evil"))
    assert f"Open: {BASE}" in shown.splitlines()
    assert len(shown) < 12_000


def test_forty_thousand_characters_fit() -> None:
    """Texts of any length are cut within Slack's limits, entities counted, and never inside one."""
    long = "<&>" * 13_400
    document = payload(
        told(title=long, evidence=long, difference=long, control=long, owner=long, texts=(long,))
    )
    assert problems(json.dumps(document).encode()) == []
    assert escaped("&" * 100, 12) == "&amp;&amp;…"


def test_plain_names_stay_as_they_are() -> None:
    """What does nothing in Slack is not changed: names of cases, versions, paths, other scripts."""
    names = "fact_recall_b-12 mem0ai==2.2.1 a/b.py Ünïcödé 日本語 עברית 50 % (x) 21:26:29+00:00 a:1"
    assert escaped(names, 500) == names == harmless(names)


def test_an_address_cannot_end_its_link() -> None:
    """An address that Slack would refuse, or read as markup, is no link and no button."""
    for url in ("javascript:alert(1)", "https://x/<!channel>", f"https://x/{'a' * 3000}", "https://x/|y"):
        document = payload(told(urls={"open": url, "run": url}))
        assert url not in everything(document)
        assert problems(json.dumps(document).encode()) == []


def test_a_message_survives_the_outbox() -> None:
    """What is frozen as JSON comes back the same, also from a release that knew other fields."""
    kept = json.loads(json.dumps(frozen(told())))
    assert thawed(kept) == told()
    assert thawed({**kept, "unheard": 1}).key == KEY


def test_a_digest_names_the_worst() -> None:
    """It counts messages and alerts by severity, and lists the worst first, each alert once."""
    normal = [frozen(told()._replace(alert_id=n, severity="normal")) for n in range(100, 400)]
    high = [frozen(told(action, alert_id=7, severity="high")) for action in ("opened", "grew")]
    found = digest("team", 20, "digest 1 to 302 channel team", [*normal, *high])
    assert found.title == "302 messages at once, of 301 alerts"
    assert "1 high, 300 normal" in found.evidence
    assert found.listed[0].name.startswith("Alert 7: Fell further")
    assert problems(json.dumps(payload(found)).encode()) == []


@pytest.mark.parametrize("found", [sample("test 1 channel team", "team"), daily("daily", [(incident(), "")])])
def test_other_messages_are_sound(found: Message) -> None:
    """A test and a daily line are messages that Slack takes, and all channels can put in words."""
    assert problems(json.dumps(payload(found)).encode()) == []
    assert found.key in plain_text(found)


def test_no_text_of_a_memory_by_itself() -> None:
    """A message that is made of an alert holds no text of a memory, whatever its evidence was made of."""
    secret = {**VERDICT, "query": "the PIN is 4711", "hits": ["the PIN is 4711"]}
    sent = message(incident(id=12, content=secret), Step("opened"), KEY, BASE)
    assert "4711" not in everything(payload(sent)) + plain_text(sent) + everything(frozen(sent))


# Over HTTP


def test_slack_takes_it(slack: SlackServer) -> None:
    """A message arrives through a real connection, and is one that Slack takes."""
    channel = open_channel("team", section(slack.url))
    assert channel.send(told()) == 200
    channel.close()
    assert [post.key for post in slack.accepted] == [KEY]
    assert slack.accepted[0].headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("answer", "permanent", "wait"),
    [
        (Answer(400), True, 0),
        (Answer(403), True, 0),
        (Answer(410), True, 0),
        (Answer(302, {"Location": "http://127.0.0.1:1/elsewhere"}), False, 0),
        (Answer(500), False, 0),
        (Answer(503, {"Retry-After": "7"}), False, 7),
        (Answer(429, {"Retry-After": "30"}), False, 30),
        (
            Answer(
                429,
                {"Date": "Mon, 30 Nov 2026 03:00:00 GMT", "Retry-After": "Mon, 30 Nov 2026 03:01:00 GMT"},
            ),
            False,
            60,
        ),
        (Answer(429, {"Retry-After": "soon"}), False, 0),
        (Answer(429, {"Retry-After": "-5"}), False, 0),
        (Answer(429, {"Retry-After": "9" * 400}), False, math.inf),
        (Answer(429, {"Retry-After": f"Mon, 30 Nov 2026 03:01:00 +{'9' * 30}"}), False, 0),
        (Answer(drop=True), False, 0),
    ],
)
def test_a_refusal_says_what_to_do(slack: SlackServer, answer: Answer, permanent: bool, wait: float) -> None:
    """Whether to try again, and when, is read from the answer; the reason tells no address."""
    slack.answers = [answer]
    channel = open_channel("team", section(slack.url))
    with pytest.raises(Refused) as refused:
        channel.send(told())
    channel.close()
    assert (refused.value.permanent, refused.value.retry_after) == (permanent, wait)
    assert "127.0.0.1" not in str(refused.value)
    assert "s3cretpath" not in str(refused.value)
    assert len(slack.posts) == 1


def test_an_answer_without_end_is_left() -> None:
    """What an answer says is not waited for longer than the answer itself: its status is enough."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_trickle, args=(server,))
        thread.start()
        channel = open_channel("team", section(f"http://127.0.0.1:{server.getsockname()[1]}/x"), 0.2)
        assert channel.send(told()) == 200
        channel.close()
        thread.join(60)
    assert not thread.is_alive()


@pytest.mark.parametrize("said", [b"half", b""], ids=["cut off", "stalls"])
def test_an_answer_that_breaks_off_has_been_given(said: bytes) -> None:
    """Whoever said 200 has the message, whatever becomes of the rest of the answer: it is not sent again."""

    def break_off(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + said)
            if said:
                connection.shutdown(socket.SHUT_WR)
            while connection.recv(65_536):
                pass

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=break_off, args=(server,))
        thread.start()
        channel = open_channel("team", section(f"http://127.0.0.1:{server.getsockname()[1]}/x"), 0.2)
        assert channel.send(told()) == 200
        channel.close()
        thread.join(60)
    assert not thread.is_alive()


def _trickle(server: socket.socket) -> None:
    """An answer of a byte at a time, until nobody listens any more."""
    connection, _ = server.accept()
    with connection, contextlib.suppress(OSError):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        while not connection.sendall(b"."):
            threading.Event().wait(0.01)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9/x", "ftp://x/y", "https://exa mple/", "nonsense", "http://[::1"]
)
def test_what_cannot_be_reached_is_refused(url: str) -> None:
    """An address at which nobody answers, or that is none, ends in a refusal and nothing else."""
    with pytest.raises(Refused) as refused:
        open_channel("team", section(url), 2.0).send(told())
    assert url not in str(refused.value)


def test_every_type_has_a_channel() -> None:
    """What the configuration may name is what there is."""
    assert ChannelSection.model_fields["type"].annotation.__args__ == tuple(CHANNELS)  # type: ignore[union-attr]


def test_a_webhook_is_signed() -> None:
    """The document is versioned JSON with every field, its signature is of timestamp and body, and a header
    names the message."""
    with running(strict=False) as server:
        given = section(server.url, type="webhook", secret="a-secret")
        channel = open_channel("hook", given)
        channel.send(told())
        channel.close()
        (post,) = server.posts
    assert post.headers["idempotency-key"] == KEY
    signed = post.headers["memtrend-timestamp"].encode() + b"." + post.body
    assert post.headers["memtrend-signature"] == f"v1={hmac.digest(b'a-secret', signed, 'sha256').hex()}"
    assert post.told["version"] == 1
    assert post.told.keys() == {"version", *Message._fields}
    assert post.told["figures"]["new"] == 0.94


def test_without_a_secret_nothing_is_signed() -> None:
    """A webhook without a secret bears no signature that could be taken for one."""
    with running(strict=False) as server:
        channel = open_channel("hook", section(server.url, type="webhook"))
        channel.send(told())
        channel.close()
    assert "memtrend-signature" not in server.posts[0].headers


@APPRISE
def test_apprise_tells_all_its_addresses() -> None:
    """Several addresses get the same plain text, and one that fails makes the message go again."""
    pytest.importorskip("apprise", reason="make install EXTRAS=apprise")
    with running(strict=False) as first, running(strict=False) as second:
        urls = [server.url.replace("http://", "json://") for server in (first, second)]
        given = section("\n".join(urls), type="apprise")
        channel = open_channel("mail", given)
        channel.send(told())
        assert [server.posts[0].told["title"] for server in (first, second)] == [headline(told())] * 2
        assert KEY in first.posts[0].told["message"]
        second.answers = [Answer(500)]
        with pytest.raises(Refused) as refused:
            channel.send(told())
        channel.close()
    assert not refused.value.permanent
    assert "s3cretpath" not in str(refused.value)


@APPRISE
def test_apprise_follows_no_redirect() -> None:
    """A message goes to the address that is configured, and to no other that its server names."""
    pytest.importorskip("apprise", reason="make install EXTRAS=apprise")
    with running(strict=False) as first, running(strict=False) as elsewhere:
        first.answers = [Answer(307, {"Location": elsewhere.url})]
        channel = open_channel("mail", section(first.url.replace("http://", "json://"), type="apprise"))
        with pytest.raises(Refused):
            channel.send(told())
        channel.close()
    assert (len(first.posts), elsewhere.posts) == (1, [])


@APPRISE
def test_apprise_sends_in_parts_what_is_too_long() -> None:
    """A service that takes short texts alone gets a long message in several, none of them too long."""
    apprise = pytest.importorskip("apprise", reason="make install EXTRAS=apprise")
    url = "discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js"
    channel = open_channel("chat", section(url, type="apprise"))
    (service,) = channel._service  # type: ignore[attr-defined]
    parts = service._apply_overflow("x " * 3000, title="a title")
    channel.close()
    assert service.overflow_mode == apprise.OverflowMode.SPLIT
    assert len(parts) > 1


@APPRISE
def test_apprise_says_what_it_does_not_know() -> None:
    """An address that apprise has no service for is refused, and not repeated."""
    pytest.importorskip("apprise", reason="make install EXTRAS=apprise")
    with pytest.raises(Refused, match="does not know") as refused:
        open_channel("mail", section("nosuchservice://user:hunter22@host", type="apprise"))
    assert "hunter22" not in str(refused.value)


# As docs/alerts.md says

DOCS = (Path(__file__).parents[2] / "docs" / "alerts.md").read_text(encoding="utf-8")


def test_the_snippet_of_the_documentation_verifies() -> None:
    """The function that the documentation gives takes a message as it arrives, and none that was changed, is
    old, was signed with another secret or not at all."""
    namespace: dict[str, Any] = {}
    (snippet,) = re.findall(r"(?s)```python\n(.*?)```", DOCS)
    exec(snippet, namespace)
    is_genuine = namespace["is_genuine"]
    with running(strict=False) as server:
        channel = open_channel("hook", section(server.url, type="webhook", secret="a-secret"))
        channel.send(told())
        channel.close()
    headers, body, _ = server.posts[0]
    assert is_genuine("a-secret", headers, body)
    assert not is_genuine("another", headers, body)
    assert not is_genuine("a-secret", headers, body + b" ")
    assert not is_genuine("a-secret", {}, body)
    for said in ("1", "", "now", "9" * 5000):
        assert not is_genuine("a-secret", {**headers, "memtrend-timestamp": said}, body)
    with time_machine.travel(datetime.now(UTC) + timedelta(hours=1)):
        assert not is_genuine("a-secret", headers, body)


def test_the_documented_channels_are_accepted(tmp_path: Path) -> None:
    """The configuration that the documentation shows loads as it stands there, but for where its secrets lie;
    and those are hidden from then on."""
    for name in re.findall(r"/run/secrets/([\w-]+)", DOCS):
        (tmp_path / name).write_text(f"https://{name}.example/s3cret-of-a-channel")
    types = {}
    for shown in re.findall(r"(?s)```toml\n(.*?)```", DOCS):
        (tmp_path / "memtrend.toml").write_text(shown.replace("/run/secrets/", ""))
        channels = load_settings(tmp_path / "memtrend.toml").channels
        types |= {name: one.type for name, one in channels.items()}
    assert types.items() >= {"team": "slack", "pager": "webhook", "mail": "apprise"}.items()
    assert redacted("to https://slack.example/s3cret-of-a-channel") == "to ***"


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_every_kind_is_documented(kind: AlertKind) -> None:
    """A kind of alert stands in docs/alerts.md with its severity, in the words of the code."""
    assert f"| `{kind.name}` | {kind.severity} | {kind.meaning} |" in DOCS.splitlines()


def test_every_key_and_field_is_documented() -> None:
    """What can be set of a channel, and what its document holds, stands in docs/alerts.md."""
    keys = {*ChannelSection.model_fields, *Message._fields}
    assert [key for key in keys if f"`{key}`" not in DOCS] == []
    assert [key for key in AlertsSection.model_fields if key not in DOCS] == []
