"""A placement ends once a real Prometheus, which scrapes what DCGM exporter writes, has not seen its GPUs in use."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from tests.e2e.conftest import Fleet
from tests.e2e.prometheus_server import missing, prometheus
from tests.e2e.test_monitoring_e2e import wait
from tests.fakes.loopback import LoopbackHandler, LoopbackServer

pytestmark = pytest.mark.skipif(bool(missing("prometheus", "promtool")), reason=missing("prometheus", "promtool"))

IDLE = 12
CLUSTERS = ("worker-2", "worker-3")
TERMS = {"idleTimeOutDuration": f"{IDLE}s", "enforceIdleTimeOut": True, "enableAutoGpuSelection": True}
EGS = "gpr.kubeslice.io/v1alpha1"
TEMPLATES = "---\n".join(
    json.dumps(
        {
            "apiVersion": EGS,
            "kind": "GPRTemplate",
            "metadata": {"name": f"on-{cluster}"},
            "spec": {"clusterName": cluster, "template": TERMS},
        }
    )
    + "\n"
    for cluster in CLUSTERS
)
BINDING = json.dumps(
    {
        "apiVersion": EGS,
        "kind": "GPRTemplateBinding",
        "metadata": {"name": "llm"},
        "spec": {
            "enableAutoGPR": True,
            "clusters": [{"clusterName": name, "defaultTemplateName": f"on-{name}"} for name in CLUSTERS],
        },
    }
)
PODS = ("vllm-0", "vllm-1")


class Exporters:
    """The exporters of two clusters, which have pods of the same names: percent of use by cluster and pod."""

    def __init__(self) -> None:
        self.use: dict[str, Mapping[str, int]] = {name: dict.fromkeys(PODS, 50) for name in CLUSTERS}
        self.address = ""

    def text(self, cluster: str) -> str:
        """Write what is scraped: a series for each GPU, and one of a GPU that no pod has."""
        lines = ["# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).", "# TYPE DCGM_FI_DEV_GPU_UTIL gauge"]
        for gpu, (pod, use) in enumerate([*self.use[cluster].items(), ("", 0)]):
            labels = {
                "gpu": gpu, "UUID": f"GPU-{cluster}-{gpu}", "pci_bus_id": f"00000000:0{gpu}:00.0",
                "device": f"nvidia{gpu}", "modelName": "NVIDIA H100 80GB HBM3", "Hostname": f"{cluster}-gpu-1",
                "container": "server" * bool(pod), "namespace": "vllm-demo" * bool(pod), "pod": pod,
            }  # fmt: skip # the labels of a series
            written = ",".join(f'{name}="{value}"' for name, value in labels.items())
            lines.append(f"DCGM_FI_DEV_GPU_UTIL{{{written}}} {use}")
        return "\n".join(lines) + "\n"


@contextmanager
def exporting() -> Iterator[Exporters]:
    exporters = Exporters()

    class Handler(LoopbackHandler):
        def do_GET(self) -> None:
            text = exporters.text(self.path.strip("/"))
            self.reply(200, text.encode(), {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    with LoopbackServer(Handler) as server:
        exporters.address = f"127.0.0.1:{server.server_port}"
        yield exporters


def job(exporters: Exporters, cluster: str) -> dict[str, object]:
    """Scrape a cluster's exporter as from its pod: the labels of the target hide those of the same name."""
    own = {"cluster": cluster, "namespace": "gpu-operator", "pod": "dcgm-exporter-x7k2p"}
    return {
        "job_name": cluster,
        "metrics_path": f"/{cluster}",
        "honor_labels": cluster == CLUSTERS[0],  # one of them as its owner wants it, one as it is by default
        "static_configs": [{"targets": [exporters.address], "labels": own}],
    }


def test_a_burst_ends_when_its_gpus_were_scraped_idle(fleet: Fleet) -> None:
    fleet.describe(
        {
            "fleet.yaml": {"engine: argocd": "engine: manifests", "observationMaxAge: 2m": "observationMaxAge: 10m"},
            "policies/serving.yaml": {"headroom: 1": "headroom: 0", "window: 10s": "window: 1s"},
        }
    )
    fleet.add("gpr-templates/idle.yaml", TEMPLATES)
    fleet.add("policies/binding.yaml", BINDING)
    fleet.observe(missing=2)
    recording = fleet.path / "recording"
    with exporting() as exporters, prometheus(fleet.path, jobs=[job(exporters, name) for name in CLUSTERS]) as server:
        settings = {"PROMETHEUS": server.url, "PROMETHEUS_INTERVAL": "1s", "RECORD": str(recording)}
        with fleet.daemon(settings=settings):
            fleet.until(fleet.subjects, "no burst")
            (burst,) = fleet.subjects()
            cluster = next(name for name in CLUSTERS if name in burst)
            (name,) = (path.name for path in (fleet.check_out() / "clusters" / cluster).iterdir())
            run(fleet, cluster, name)

            measured = f'min(count_over_time(DCGM_FI_DEV_GPU_UTIL{{cluster="{cluster}"}}[10m]))'
            wait(lambda: (server.value(measured) or 0) > 2 * IDLE, fleet)
            assert fleet.subjects() == [burst], "its GPUs are in use"

            exporters.use[cluster] = dict(zip(PODS, (0, 50), strict=True))
            since = server.value(measured) or 0
            wait(lambda: (server.value(measured) or 0) > since + 1.5 * IDLE, fleet)
            assert fleet.subjects() == [burst], "one of its GPUs is in use"

            exporters.use[cluster] = dict.fromkeys(PODS, 0)
            wait(lambda: len(fleet.subjects()) > 1, fleet)
    assert fleet.subjects() == [burst, f'Revert "{burst}"']
    body = " ".join(fleet.log("-1", "--format=%b"))
    assert "its GPUs have not been used since" in body
    assert f"{IDLE}s are allowed" in body
    assert fleet.replay(recording)


def run(fleet: Fleet, cluster: str, placement: str) -> None:
    """Observe that the pods of a placement have nodes."""
    pods = [{"namespace": "vllm-demo", "name": pod, "gpus": 1} for pod in PODS]
    placed = {"name": placement, "bound": len(PODS), "ready": len(PODS), "gpuPods": pods}
    file, unfinished = fleet.seen / f"{cluster}.yaml", fleet.seen / f".{cluster}.yaml"
    unfinished.write_text(f"{file.read_text()}\nplacements: {json.dumps([placed])}\n")
    unfinished.rename(file)
