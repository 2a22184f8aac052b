"""A chart repository over http that holds one chart: the layout's `vllm-stack`, as small as can be."""

from __future__ import annotations

import io
import json
import tarfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.e2e.git_server import free_port

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
        self._server = ThreadingHTTPServer(("127.0.0.1", free_port()), partial(_Quiet, directory=str(root)))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def stop(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the name is the library's
        """Say nothing."""
