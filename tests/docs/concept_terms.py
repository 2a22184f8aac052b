"""The concepts of Overspill, and the words that name each: what somebody has to learn who reads a text.

They are the words of docs/background/concepts.md, a row of its table being one, what its headings explain, and the
kinds that no such word stands for. `tests/docs/test_concepts.py` keeps them in step with both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

MOST = 8
"""Concepts that may be named from a kubeconfig to a first plan."""
CONCEPTS: Mapping[str, str] = {
    "fleet repository": r"(?i:\bfleets?\b)",
    "workspace": r"(?i:\bworkspaces?\b)",
    "primary cluster": r"(?i:\bprimary\b)",
    "template, workload": r"(?i:\b(?:workload)?templates?\b|\bworkloads?\b)",
    "observation": r"(?i:\bobserv(?:ed|ations?)\b)",
    "signal": r"(?i:\bsignals?\b)",
    "demand, deficit": r"(?i:\bdemand\b|\bdeficit\b)",
    "policy": r"(?i:\b(?:burst)?polic(?:y|ies)\b)",
    "placement": r"(?i:\bplacements?\b)",
    "burst, request": r"(?i:\bbursts?\b|\brequests?\b|\bworkloadplacements?\b)",
    "engine": r"(?i:\bengines?\b)",
    "ledger": r"(?i:\bledger\b)",
    "in flight": r"(?i:\bin flight\b)",
    "hold": r"(?i:\bholds?\b)",
    "Windows": r"(?i:\bwindows?\b)",
    "Renewal": r"(?i:\brenew(?:s|ed|al)?\b)",
    "Budgets": r"(?i:\bbudgets?\b)",
    "Headroom": r"(?i:\bheadroom\b)",
    "Cluster": r"\bClusters?\b",
    "Notification": r"\bNotifications?\b",
    "GPUProvisioningRequest": r"\bGPRs?\b|\bGPUProvisioningRequests?\b",
    "GPRTemplate": r"\bGPRTemplates?\b",
    "GPRTemplateBinding": r"\bGPRTemplateBindings?\b",
    "WorkspacePolicy": r"\bWorkspacePolic(?:y|ies)\b",
    "WorkloadKind": r"\bWorkloadKinds?\b",
    "WorkloadSpread": r"\bWorkloadSpreads?\b",
}
"""By name, the pattern of its words. A kind of Kubernetes has a capital only where Overspill's is meant: a Cluster."""


def concepts(text: str) -> set[str]:
    """Return the names of the concepts that a text names."""
    return {name for name, words in CONCEPTS.items() if re.search(words, text)}
