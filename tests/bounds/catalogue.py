"""All experiments, registered by the import of their modules."""

from __future__ import annotations

from tests.bounds import (
    answers_over_http,
    charts,
    clusters,
    demand,
    files,
    notifications,
    recordings,
    remotes,
    requests,
    templates,
)

MODULES = (files, templates, clusters, charts, remotes, answers_over_http, notifications, requests, recordings, demand)
