"""Expressions in string leaves: typed, checked, and unable to do harm."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.expressions import render
from reconciler.errors import InvalidInput, Severity
from reconciler.model.policy import Cluster
from reconciler.model.workload import DeploySpec
from tests.builders.deploy_specs import CLUSTER, CONFIG, WEB, chart, context, rendered, spec


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{{ replicas }}", 3),
        ("{{ replicas * 2 + 1 }}", 7),
        ("{{ replicas > 2 }}", True),
        ("{{ replicas / 2 }}", 1.5),
        ("{{ [replicas, 'a'] }}", [3, "a"]),
        ("{{ cluster.name }}", "worker-2"),
        ("{{ none }}", None),
        ("{{ {'zone': cluster.labels.zone} }}", {"zone": "eu-1"}),
        ("{{ replicas }} replicas", "3 replicas"),
        (" {{ replicas }}", " 3"),
        ("{{ replicas }}\n", "3\n"),
        ("{{ true }} and {{ cluster.labels }}", 'true and {"zone": "eu-1", "nvidia.com/gpu.product": "H100"}'),
        ("{{ cluster.labels['nvidia.com/gpu.product'] }}", "H100"),
        ("{{ cluster.labels.region | default('none') }}", "none"),
        ("{% if replicas > 2 %}many{% else %}few{% endif %}", "many"),
        ("{% for i in range(replicas) %}{{ placement.name }}-{{ i }};{% endfor %}",
         "vllm-7f3a-0;vllm-7f3a-1;vllm-7f3a-2;"),
        ("{% for key, value in cluster.labels.items() %}{{ key }}={{ value }};{% endfor %}",
         "zone=eu-1;nvidia.com/gpu.product=H100;"),
        ("{{ placement.expiresAt }} {{ placement.createdAt }}", "2026-11-20T10:15:00Z 2026-11-20T10:05:00Z"),
        ("{{ workspace.name }}/{{ workspace.primaryCluster }}/{{ template.name }}/{{ template.namespace }}",
         "llm/worker-1/vllm/kubeslice-avesha"),
        ("{{ placement.name.split('-') | last | upper }}", "7F3A"),
        ("{% raw %}{{ .Values.x }}{% endraw %}", "{{ .Values.x }}"),
        ("{ braces: of, json }", "{ braces: of, json }"),
    ],
)  # fmt: skip # a table, a row a line
def test_a_leaf_becomes_what_its_expression_says(text, value):
    result = rendered(text)
    assert result == value
    assert type(result) is type(value)


@given(replicas=st.integers(0, 2**31))
def test_a_leaf_that_is_one_expression_keeps_the_type_of_its_value(replicas):
    assert rendered("{{ replicas }}", replicas=replicas) == replicas
    assert rendered("{{ replicas }}x", replicas=replicas) == f"{replicas}x"


@given(label=st.text())
def test_a_value_cannot_add_anything_to_the_document(label):
    cluster = replace(CLUSTER, labels={"note": label})
    manifest = {**CONFIG, "data": {"note": "{{ cluster.labels.note }}", "more": "is {{ cluster.labels.note }}"}}
    deployed = spec(("settings", manifest))
    result = render.render(deployed, context(deployed, cluster=cluster)).manifests[0].manifest
    assert result == {**CONFIG, "data": {"note": label, "more": f"is {label}"}}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(alphabet="ab }%#\n") | st.just("{ {"),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet="ab"), inner),
        max_leaves=20,
    )
)
def test_what_has_no_expression_is_the_same_object_afterwards(value):
    deployed = spec(chart(values={"it": value, "n": "{{ replicas }}"}), ("settings", CONFIG))
    result = render.render(deployed, context(deployed))
    assert result.helm[0].values["it"] is value
    assert result.manifests[0] is deployed.manifests[0]


def test_rendering_leaves_the_template_as_it_was():
    deployed = spec(("web", WEB))
    before = json.dumps(WEB)
    assert render.render(deployed, context(deployed)).manifests[0].manifest["spec"]["replicas"] == 3
    assert json.dumps(WEB) == before


def test_names_and_commands_are_texts_whatever_the_expression_gives():
    deployed = spec(
        chart(release_name="vllm-{{ replicas }}", release_namespace="{{ replicas }}"), ("c", "{{ replicas }}")
    )
    result = render.render(deployed, context(deployed))
    assert (result.helm[0].release_name, result.helm[0].release_namespace) == ("vllm-3", "3")
    assert result.commands[0].cmd == "3"
    broken = spec(("c", "{{ [1] }}"))
    with pytest.raises(InvalidInput, match=r"spec\.cmdExec\[0\]\.cmd: the expression gives no text"):
        render.render(broken, context(broken))


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("{{ replcas }}", "no template knows the name 'replcas'", "try 'replicas'"),
        ("{{ cluster.nam }}", "cluster has no 'nam'", "try 'name'"),
        ("{{ cluster['nam'] }}", "cluster has no 'nam'", "try 'name'"),
        ("{{ placement.expires }}", "placement has no 'expires'", "try 'expiresAt'"),
        ("{{ cluster.nam | default('x') }}", "cluster has no 'nam'", "try 'name'"),
        ("{{ cluster.name.zone }}", "cluster.name is a text and has no 'zone'", ""),
        ("{{ replicas.real }}", "replicas is a number and has no 'real'", ""),
        (
            "{{ xyzzy }}",
            "no template knows the name 'xyzzy'",
            "there are cluster, placement, replicas, template, workspace",
        ),
        ("{{ 'a' | uper }}", "there is no filter 'uper' in templates", "try 'upper'"),
        ("{{ replicas is evn }}", "there is no test 'evn' in templates", "try 'even'"),
        ("{% for i in range(2) %}{{ loop.indx }}{% endfor %}{{ i }}", "no attribute of loop 'indx'", "try 'index'"),
        ("{{ i }}{% for i in range(2) %}{% endfor %}", "no template knows the name 'i'", "there are"),
        ("{{ replicas", "the expression is broken: unexpected end of template", "{% raw %}"),
        ("a\n{{ + }}", "the expression is broken in line 2 of the text", "{% raw %}"),
        ("${#array[@]}", "the expression is broken: Missing end of comment tag", "{% raw %}"),
        ("{% set a = 1 %}", "{% set %} is not available in templates", "use {{ }}, if and for"),
        ("{% macro f() %}{% endmacro %}", "{% macro %} is not available", "use"),
        ("{% include 'x' %}", "{% include %} is not available", "use"),
        ("{% extends 'x' %}", "{% extends %} is not available", "use"),
        ("{{ ''.__class__ }}", "'__class__' is private", "use the documented names only"),
        ("{{ ''['__class__'] }}", "'__class__' is private", "use the documented names only"),
        ("{{ cluster | attr('name') }}", "there is no filter 'attr'", "there are"),
        ("{{ '{}'.format(1) }}", "'format' cannot be called", "there are range and"),
        ("{{ lipsum() }}", "'lipsum' cannot be called", "there are range and"),
        ("{{ range(*[3]) }}", "'*' and '**' arguments are not available", "write the arguments out"),
        ("{{ 1e999 }}", "a number is too large to be one", "write a number below 1e308"),
        ("{{ -1e999 + 1 }}", "a number is too large to be one", "write a number below 1e308"),
        ("{{ [1] | sort(reverse=true, reverse=true) }}", "the argument 'reverse' is given 2 times", "give it once"),
        ("{{ 1 is divisibleby(num=1, num=2) }}", "the argument 'num' is given 2 times", "give it once"),
        ("{{ ''.split(sep=' ', sep='a') }}", "the argument 'sep' is given 2 times", "give it once"),
    ],
)
def test_what_no_rendering_could_get_right_is_found_when_the_file_is_loaded(text, message, hint):
    found = render.check_expressions(spec(chart(values={"list": [{"it": text}]})))
    assert found, "nothing was found"
    finding = next(finding for finding in found if message in finding.message)
    assert hint in finding.hint
    assert finding.loc == ("spec", "helmConfig", 0, "values", "list", 0, "it")


def test_every_fault_of_every_leaf_is_told_at_once():
    deployed = spec(
        chart(release_name="{{ nope }}", release_namespace="{{ nope }}", values={"a": "{{ nope }} {{ neither }}"}),
        ("settings", {**CONFIG, "data": {"a": "{{ nope }}"}}),
        ("c", "kubectl get {{ nope }}"),
    )
    assert [finding.loc[1:] for finding in render.check_expressions(deployed)] == [
        ("helmConfig", 0, "values", "a"),
        ("helmConfig", 0, "values", "a"),
        ("manifestResources", 0, "manifest", "data", "a"),
        ("helmConfig", 0, "releaseName"),
        ("helmConfig", 0, "releaseNamespace"),
        ("cmdExec", 0, "cmd"),
    ]


def test_an_expression_where_none_is_read_is_an_error_and_in_a_key_a_warning():
    deployed = spec(chart(version="{{ replicas }}", values={"{{ replicas }}": 1}))
    found = {finding.loc: finding for finding in render.check_expressions(deployed)}
    assert found["spec", "helmConfig", 0, "version"].severity is Severity.ERROR
    assert found["spec", "helmConfig", 0, "values", "{{ replicas }}"].severity is Severity.WARNING


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{ cluster.labels.zon }}", "there is no 'zon' here: try 'zone'"),
        ("{{ cluster.labels.region.name }}", "there is no 'region' here"),
        ("{{ replicas // 0 }}", "by zero"),
        ("{{ 'a' + 1 }}", "can only concatenate str"),
        ("{{ 'a' < 1 }}", "not supported between"),
        ("{{ range(1, 9, 0) }}", "must not be zero"),
        ("{{ 1e300 * 1e300 }}", "the number is infinite"),
        ("{{ cluster.labels.keys }}", "no value (a call without its ()?)"),
    ],
)
def test_what_fails_only_when_rendered_names_the_template_and_the_leaf(text, message):
    with pytest.raises(InvalidInput) as caught:
        rendered(text)
    (problem,) = caught.value.problems
    assert (problem.path, problem.line, problem.field) == ("templates/vllm.yaml", 4, "spec.helmConfig[0].values.it")
    assert message in problem.message
    assert str(problem).startswith("templates/vllm.yaml:4: spec.helmConfig[0].values.it: rendering failed: ")


def test_what_was_never_checked_is_not_run_either():
    with pytest.raises(InvalidInput, match="no template knows the name 'nope'"):
        rendered("{{ nope }}")


def test_uses_tells_whether_an_expression_reads_a_name():
    assert render.reads_variable(spec(("web", WEB)), "replicas")
    assert not render.reads_variable(spec(("web", WEB)), "cluster")
    assert render.reads_variable(spec(("c", "kubectl get {{ cluster['name'] }}")), "cluster")
    assert not render.reads_variable(spec(chart(values={"a": "replicas"})), "replicas")
    assert not render.reads_variable(
        spec(chart(values={"a": "{% for replicas in [1] %}{{ replicas }}{% endfor %}"})), "replicas"
    )


def test_equal_texts_are_compiled_once():
    before = render.sandbox.compile_text.cache_info()
    for name in ("a", "b", "c"):
        assert rendered("{{ replicas + 41 }} once", cluster=Cluster(name=name)) == "44 once"
    after = render.sandbox.compile_text.cache_info()
    assert after.misses - before.misses <= 1
    assert after.maxsize is not None


def test_an_empty_spec_has_nothing_to_render():
    assert render.render(DeploySpec(), context(DeploySpec())) == DeploySpec()


FRAGMENTS = st.sampled_from([
    "{{", "}}", "{%", "%}", "{#", "#}", " ", "replicas", "cluster", ".", "name", "labels", "[", "]", "(", ")", "'", "|",
    "default", "list", "join", "range", "for ", "i", " in ", "endfor", "if ", "else", "endif", "==", "+", "*", "~", ",",
    "1", "99999999", "not ", "is ", "odd", "loop", "items", "_", "none", "{", "}", ":", "\n", "-", "raw",
    "endraw", "é", "%",
])  # fmt: skip # a list of words, filled line by line


TEXTS = st.lists(FRAGMENTS, max_size=25).map("".join)


@given(TEXTS | TEXTS.map("{{{{{}}}}}".format))
def test_any_text_is_rendered_or_refused_in_words(text):
    deployed = spec(chart(values={"it": text}))
    problems, value = (), None
    try:
        value = render.render(deployed, context(deployed)).helm[0].values["it"]
    except InvalidInput as error:
        problems = error.problems
    if render.check_expressions(deployed):
        assert problems, "what was found when the file was loaded was rendered all the same"
    assert {problem.field for problem in problems} <= {"spec.helmConfig[0].values.it"}
    assert json.loads(json.dumps(value)) == value
