"""The OpenAPI description has every route, and random requests that follow it never cause a 5xx."""

from collections import Counter

import pytest

from deciban.service.app import PAGE
from deciban.service.openapi import ROUTES, SCHEMAS, description
from service.running import Running

pytestmark = pytest.mark.slow

schemathesis = pytest.importorskip("schemathesis", reason="needs schemathesis")
CHECKS = [
    schemathesis.checks.not_a_server_error,
    schemathesis.checks.status_code_conformance,
    schemathesis.checks.content_type_conformance,
    schemathesis.checks.response_schema_conformance,
]


def test_every_route_is_described_and_every_reference_resolves(running):
    made = running.get("/openapi.json")
    assert made == description(made["info"]["version"])
    assert {(info.path, info.method.lower()) for info in ROUTES} == {
        (path, method) for path, operations in made["paths"].items() for method in operations
    }
    for info in ROUTES:
        assert {info.body, info.answer} - {None} <= set(SCHEMAS)
        other = "GET" if info.method == "POST" else "POST"
        if (other, info.path) not in {(each.method, each.path) for each in ROUTES}:
            assert running.client.request(other, info.path).status_code == 405
    for path in PAGE:
        assert running.client.get(path).status_code == 200


@pytest.mark.filterwarnings("ignore")  # of schemathesis and its libraries
def test_random_requests_are_answered_or_refused(texts_model):
    """The longer run is `make serve-fuzz`."""
    from hypothesis import HealthCheck, Phase, given, settings

    once = settings(
        max_examples=3,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    statuses = Counter()

    def ask(case):
        answer = case.call(base_url=service.address)
        statuses[answer.status_code] += 1
        assert answer.status_code < 500, (case.operation.path, answer.text)
        case.validate_response(answer, checks=CHECKS)

    with Running(texts_model) as service:
        schema = schemathesis.openapi.from_url(f"{service.address}/openapi.json")
        for found in schema.get_all_operations():
            once(given(case=found.ok().as_strategy())(lambda case: ask(case)))()
        assert service.get("/ready")["ready"]
    assert statuses[200] >= 8  # the GET requests at least
    assert service.errors == []
