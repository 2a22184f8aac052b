"""Whatever somebody else wrote, no credential in it gets into a commit."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.adapters.git.fastimport import stream
from reconciler.core.commits.messages import line, message
from reconciler.core.engines.argocd.applications import read_application
from reconciler.model.end_reason import EndReason
from reconciler.model.ids import NAME, ClusterName, PlacementName, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.tree import Commit, Identity
from reconciler.text.redaction import FORMS, MIXED, redacted
from reconciler.text.wording import engine_message
from tests.builders.changes import PLACE, REVERT, SHORTAGE
from tests.builders.engine_objects import application
from tests.builders.placement_records import SOURCE

ADA = Identity(name="Ada", email="ada@example.com")
NOW = datetime(2026, 11, 20, tzinfo=UTC)
PASSWORD = "hunter-2-" + "sesame"
DEPLOY_TOKEN = "deploytoken" + "AbcdefXyz"
TOKENS = (
    "glpat-" + "Zx8Qv3rT1mN7bLk2Pq9W",
    "ovs_" + "Zx8Qv3rT1mN7bLk2Pq9WZx8Qv3rT1mN7bLk2Pq9W-_a",
    "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYz012345",
    "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8",
    "AKIA" + "ABCDEFGHIJKLMNOP",
    "eyJ" + "hbGciOiJIUzI1NiJ9.eyJ" + "zdWIiOiJhZGEtbG92ZWxhY2UifQ.c2lnbmF0dXJlMTIz",
)
SAYINGS = (
    f"helm pull: Get https://bot:{PASSWORD}@charts.example.com/index.yaml: 403",
    f"failed to fetch https://{PASSWORD}@git.example.com/acme: denied",
    f"GET https://example.com/chart.tgz?x=1&access_token={PASSWORD}&y=2 failed",
    f'login with {{"password": "{PASSWORD}"}} failed',
    *(f"cannot log in with '{token}', is it right?" for token in TOKENS),
    f"sent Authorization: Bearer {TOKENS[0]}",
    rf"denied the request: {{\"password\":\"{PASSWORD}\",\"user\":\"bot\"}}",
    rf'cannot decode "{{\"auths\":{{\"r.io\":{{\"auth\":\"{PASSWORD}\"}}}}}}"',
    f'env {{name: DB_PASSWORD, value: "{PASSWORD}"}} is not allowed',
    f"asked for Password: {PASSWORD} twice",
    f"ran helm --password {PASSWORD} --debug",
    f"sent x-api-key: {PASSWORD} there",
    f"connect with pwd={PASSWORD};host=db failed",
    f"GET https://acct.blob.example.com/x?sv=2022&sig={PASSWORD}&se=2026 is 403",
    f"clone https://bot:p@ss/{PASSWORD}@git.example.com/x failed",
    f"dial postgres://$(USER):{PASSWORD}@db failed",
    f"dial postgres://$(USER):$(PREFIX){PASSWORD}@db failed",
    f"dial postgres://{{{{ .Values.user }}}}:{PASSWORD}@db failed",
    f"dial postgres://ada:{PASSWORD}{{{{ .Values.suffix }}}}@db failed",
    f"dial postgres://{PASSWORD}:$(PASS)@db failed",
    f"ran serve --api-key=$(PREFIX){PASSWORD} --port=80",
    f"dial postgres://app:$(PG)/{PASSWORD}@db failed",
    f"dial postgres://app:$(PG)/x@sha256:0a{PASSWORD}@db failed",
    f"clone https://{DEPLOY_TOKEN}:$(X)@git.example.com/a failed",
    f"clone https://bot:1234/{PASSWORD}@git failed",
    f"clone https://jane.doe:1234/{PASSWORD}@git.example.com/fleet.git failed",
)
SECRETS = (PASSWORD, DEPLOY_TOKEN, *TOKENS)


def tells(text: str) -> bool:
    """Tell whether half of a secret is in a text, or more of it."""
    return any(secret[:size] in text for secret in SECRETS for size in (len(secret) // 2,))


@pytest.mark.parametrize("saying", SAYINGS)
def test_credentials_are_taken_out_and_the_rest_stays(saying: str) -> None:
    clean = redacted(saying)
    assert not tells(clean)
    assert "<redacted>" in clean
    assert clean.split(" ")[0] == saying.split(" ", maxsplit=1)[0]
    assert redacted(clean) == clean


@pytest.mark.parametrize(
    "saying",
    [
        "0/4 nodes are available: 1 Insufficient nvidia.com/gpu, 3 node(s) had untolerated taint {a: b}",
        "cannot reach https://charts.example.com:8443/index.yaml?a=b: no such host",
        "image ghcr.io/acme/llama-2-7b-chat-hf@sha256:" + "0a1b2c3d" * 8,
        "secret registry-credentials-read not found; the token has expired",
        "revert commit " + "0a1b2c3d4e" * 4,
        "Get https://registry.example.com:5000/acme/image@sha256:" + "0a1b2c3d" * 8,
        "cannot reach https://git.example.com:8443/npm/@scope/pkg@1.2.3/index and http://localhost:8080/a@b",
        "get https://proxy:3128/module@v1.2.3 and oci://registry:5000/vllm@sha256:0a",
        "password: authentication failed; pwd=/srv/fleet; --token is missing",
        "dial postgres://$(USER):$(PASS)@db and https://$(TOKEN)@git and redis://bot:${PASS}@cache",
        "dial postgres://{{ .Values.user }}:{{ .Values.pass }}@db and amqp://{{.Values.user}}:{{.Values.pass}}@mq",
        "pull http://$(HOST):$(PORT)/acme/image@sha256:0a and http://{{ .Values.host }}:{{ .Values.port }}/a@sha256:0a",
        "pull http://$(HOST):$(PORT)/{{ .Values.image }}@sha256:0a and clone https://oauth2:$(TOKEN)@git",
        "ran serve --api-key=$(VLLM_API_KEY) --token ${HF_TOKEN_2} and get ?password={{.Values.pass}}&x=1",
        '{"name": "DB_PASSWORD", "value": "$(PASS)"}',
    ],
)
def test_what_is_no_credential_stays_as_it_is(saying: str) -> None:
    assert redacted(saying) == saying


@pytest.mark.parametrize("form", [form for _, part, form in FORMS if part not in ("", "://")])
@given(data=st.data())
def test_every_form_of_a_token_is_taken_out(form: str, data: st.DataObject) -> None:
    saying = data.draw(st.from_regex(re.compile(form.replace(MIXED, ""), re.ASCII), fullmatch=True))
    saying += "Q" if MIXED in form else ""
    assert redacted(saying) != saying


def test_private_key_goes_as_a_whole() -> None:
    key = "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEow\nIBAAKC\n-----END RSA " + "PRIVATE KEY-----"
    assert redacted(f"cannot use {key} here") == "cannot use <redacted> here"


@given(st.text(max_size=20), st.sampled_from(SAYINGS), st.text(max_size=20))
def test_no_surroundings_save_a_token(before: str, saying: str, after: str) -> None:
    assert not tells(redacted(f"{before} {saying} {after}"))


@pytest.mark.parametrize("name", ["sk-telecom-llama-3-0a1b2c3d", "nvapi-gateway-012345678-0a1b2c3d", "glrt-a100-llm"])
def test_name_that_begins_like_a_token_stays_in_a_commit(name: str) -> None:
    workload = WorkloadId(WorkspaceName("llm"), TemplateName(name))
    placement = replace(PLACE.placement, name=PlacementName(name), cluster=ClusterName(name), workload=workload)
    text = message(replace(PLACE, after=placement), source=SOURCE)
    assert f"Overspill-Cluster: {name}\n" in text
    assert f"Overspill-Placement: llm/{name}\n" in text
    assert text.encode() in stream(None, None, [Commit(message=text, author=ADA, at=NOW)], ADA, branch="placements")


@given(st.from_regex(NAME, fullmatch=True))
def test_no_name_of_kubernetes_is_taken_for_a_token(name: str) -> None:
    title = f"burst({name}/{name}): 2 replicas on {name} for 10m"
    assert redacted(title) == title


@pytest.mark.parametrize("saying", SAYINGS)
def test_message_of_an_engine_is_kept_without_credentials(saying: str) -> None:
    for margin in range(250, 300, 7):  # cut in two, a token could not be told any more
        assert not tells(engine_message("x" * margin + " " + saying))
    raw = application("worker-2", "vllm-7f3a90c1")
    raw["status"]["operationState"] |= {"phase": "Failed", "message": saying}
    report = read_application(raw)
    assert report is not None
    assert "<redacted>" in report.message
    assert not tells(report.message)


@pytest.mark.parametrize("saying", SAYINGS)
def test_no_reason_takes_a_credential_into_a_commit(saying: str) -> None:
    failed = replace(REVERT, why=EndReason.FAILED, detail=saying)
    asked = replace(PLACE, shortage=replace(SHORTAGE, causes=(saying,), asks=(saying,)))
    for change in (failed, asked):
        for text in (message(change, source=SOURCE), line(change)):
            assert not tells(text)
    assert "<redacted>" in message(failed, source=SOURCE)
    assert "<redacted>" in message(asked, source=SOURCE)


def test_git_gets_no_credential_whoever_wrote_the_message() -> None:
    commit = Commit(message="\n".join(("Subject", "", *SAYINGS)), author=ADA, at=NOW)
    written = stream(None, NOW, [commit], ADA, branch="placements").decode()
    assert "<redacted>" in written
    assert not tells(written)
