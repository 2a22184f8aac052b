"""A chart repository over http that holds one chart: the layout's `vllm-stack`, as small as can be."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

from tests.fakes.loopback import LoopbackServer, files_of

PUBLISHED = "https://vllm-project.github.io/production-stack"
"""Where the layout says that the chart is; tests put the address served here in its place."""

CHART = {
    "Chart.yaml": "apiVersion: v2\nname: vllm-stack\nversion: 0.1.7\n",
    "values.yaml": "servingEngineSpec: {modelSpec: []}\n",
    "templates/engine.yaml": """
{{- range .Values.servingEngineSpec.modelSpec }}
{{- if .refuse }}{{ fail .refuse }}{{ end }}
apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ $.Release.Name }}-{{ .name }}"}
spec:
  replicas: {{ .replicaCount }}
  selector: {matchLabels: {model: {{ .name }}}}
  template:
    metadata: {labels: {model: {{ .name }}}}
    spec:
      containers:
      - name: engine
        image: {{ .repository }}:{{ .tag }}
        resources: {limits: {nvidia.com/gpu: {{ .requestGPU }}}}
{{- end }}
""",
}


class ChartRepository:
    """Serves the chart at `url` until `stop`."""

    def __init__(self, root: Path) -> None:
        """Pack the chart and start."""
        root.mkdir()
        with tarfile.open(root / "vllm-stack-0.1.7.tgz", "w:gz") as archive:
            for path, text in CHART.items():
                entry = tarfile.TarInfo(f"vllm-stack/{path}")
                entry.size = len(text)
                archive.addfile(entry, io.BytesIO(text.encode()))
        version = {"name": "vllm-stack", "version": "0.1.7", "apiVersion": "v2", "urls": ["vllm-stack-0.1.7.tgz"]}
        (root / "index.yaml").write_text(json.dumps({"apiVersion": "v1", "entries": {"vllm-stack": [version]}}))
        self._server = LoopbackServer(files_of(root))
        self._server.start()
        self.url = self._server.url

    def stop(self) -> None:
        """Stop serving."""
        self._server.stop()
