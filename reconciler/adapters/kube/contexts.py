"""The contexts of a kubeconfig."""

from __future__ import annotations

from pathlib import Path

from kubernetes.aio.config.config_exception import ConfigException
from kubernetes.aio.config.kube_config import KubeConfigMerger
from yaml import YAMLError

from reconciler.errors import Problem


class Contexts:
    """The contexts of a kubeconfig, read again whenever it changes; a broken file keeps its last contexts."""

    def __init__(self, kubeconfig: Path | None) -> None:
        self._kubeconfig = kubeconfig
        self._stamp: object = None
        self._known: frozenset[str] = frozenset()
        self.problems: tuple[Problem, ...] = ()

    def read(self) -> frozenset[str]:
        """Return their names, and set `problems` to those of the file."""
        if self._kubeconfig is None:
            return self._known
        try:
            stat = self._kubeconfig.stat()
            stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            if stamp != self._stamp:
                self._known, self._stamp, self.problems = _names(self._kubeconfig), stamp, ()
        except (OSError, ConfigException, YAMLError, AttributeError, KeyError, TypeError, ValueError) as error:
            cause = (error.strerror if isinstance(error, OSError) else None) or "it is not a kubeconfig"
            self.problems = (Problem(path=str(self._kubeconfig), message=f"cannot be read: {cause}"),)
        return self._known


def _names(kubeconfig: Path) -> frozenset[str]:
    merger = KubeConfigMerger(str(kubeconfig))
    for part in merger.config_files.values():
        if any(part[item] is None for item in ("clusters", "contexts")) or "users" not in part:
            raise ValueError("it is cut off")  # kubectl writes in place, users last
    return frozenset(str(context["name"]) for context in merger.config["contexts"].value)
