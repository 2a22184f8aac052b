"""A small API server over real HTTP: lists in pages, watches with versions and bookmarks, and every way to go wrong.

It answers single questions too: objects by name, what a login may do, and what is served in which version.
"""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.fakes.loopback import LoopbackHandler, LoopbackServer

Raw = dict[str, Any]


class Cluster:
    """What the server holds, and how it behaves. Versions count up by one with each change."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.objects: dict[str, dict[str, Raw]] = {}
        self.events: list[tuple[int, str, str, Raw]] = []
        self.version = 100
        self.oldest = 0
        self.epoch = 0
        self.token = ""
        self.hangs = threading.Event()
        self.refuses: dict[str, int] = {}
        """Statuses, by the end of the paths that are answered with them."""
        self.refuses_watches: dict[str, int] = {}
        """The same, for watches alone."""
        self.ends_watches: dict[str, Raw] = {}
        """Errors, by the end of the paths of which each watch ends with them at once."""
        self.mute = threading.Event()
        """Watches stand, and nothing comes of them: a proxy holds it back."""
        self.curt = threading.Event()
        """Each watch is ended well, at once."""
        self.groups: dict[str, list[str]] = {}
        """The versions of API groups that tell of them, that of the server's own choice last."""
        self.documents: dict[str, Any] = {}
        """Answers by path: discovery, and objects that are asked for by name. Bytes are sent as they are."""
        self.kinds: dict[str, list[str]] = {}
        """The plurals of each group and version that is asked for them."""
        self.denied: set[str] = set()
        """What no login may read: with their group, in one namespace (``argocd/applications.argoproj.io``), or one
        object of it (``demo/configmaps/settings``)."""
        self.account = ""
        self.ahead = 0
        """Seconds that its clock is ahead of ours."""
        self.managed: dict[str, tuple[str, str]] = {}
        """By the end of the paths of objects: another field manager, and the field that it has set."""
        self.longest_token = 1 << 32
        """Seconds for which a token of an account may last."""
        self.redirects: dict[str, str] = {}
        """Other addresses, by the end of the paths that lead there."""
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        self.url = ""

    def put(self, plural: str, raw: Raw) -> None:
        key = f"{raw['metadata'].get('namespace', '')}/{raw['metadata']['name']}"
        with self.changed:
            type_ = "MODIFIED" if key in self.objects.get(plural, {}) else "ADDED"
            self._note(plural, type_, raw)
            self.objects.setdefault(plural, {})[key] = raw

    def delete(self, plural: str, name: str, namespace: str = "") -> None:
        with self.changed:
            self._note(plural, "DELETED", self.objects[plural].pop(f"{namespace}/{name}"))

    def bookmark(self) -> None:
        """Move every watch on to a version that no event of its own has."""
        with self.changed:
            self.version += 1
            for plural in ("nodes", "pods"):
                marked: Raw = {"metadata": {"resourceVersion": str(self.version)}}
                self.events.append((self.version, plural, "BOOKMARK", marked))
            self.changed.notify_all()

    def forget_history(self) -> None:
        """Compact: versions before the present one are gone."""
        with self.changed:
            self.oldest = self.version

    def drop(self) -> None:
        """Break every watch off."""
        with self.changed:
            self.epoch += 1
            self.changed.notify_all()

    def count(self, path: str, *, watch: bool) -> int:
        return sum(1 for _, at, query in list(self.asked) if at.endswith(path) and ("watch" in query) is watch)

    def selectors(self, path: str) -> set[str]:
        """Return the label selectors of all requests for a path; empty for none."""
        return {query.get("labelSelector", "") for _, at, query in list(self.asked) if at.endswith(path)}

    def _note(self, plural: str, type_: str, raw: Raw) -> None:
        self.version += 1
        raw["metadata"]["resourceVersion"] = str(self.version)
        self.events.append((self.version, plural, type_, raw))
        self.changed.notify_all()


def stored(path: str) -> str:
    """Say under which name the objects of a path are held: their plural, beside Kubernetes' own with its group."""
    plural = path.rpartition("/")[2]
    return f"{plural}.batch.volcano.sh" if path.startswith("/apis/batch.volcano.sh/") else plural


def served(name: str, versions: list[str]) -> Raw:
    """Describe an API group."""
    entries = [{"version": version, "groupVersion": f"{name}/{version}"} for version in versions]
    return {"name": name, "versions": entries, "preferredVersion": entries[-1]}


def object_key(path: str) -> tuple[str, str] | None:
    """Return where the object of a path is held, and under which key; None for the path of a list."""
    parts = path.strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    match rest:
        case ["namespaces", name]:
            return "namespaces", f"/{name}"
        case ["namespaces", space, plural, name]:
            return plural, f"{space}/{name}"
        case [plural, name] if plural != "namespaces":
            return plural, f"/{name}"
    return None


def meant(raw: Raw, path: str, query: dict[str, str]) -> bool:
    """Tell whether an object is in the namespace of a path, if that has one, and has the label or name asked for."""
    scope = path.partition("/namespaces/")[2].split("/")
    label, _, value = query.get("labelSelector", "").partition("=")
    labels = raw["metadata"].get("labels", {})
    here = len(scope) < 2 or raw["metadata"].get("namespace") == scope[0]
    name = query.get("fieldSelector", "").removeprefix("metadata.name=")
    named = name in ("", raw["metadata"]["name"])
    return here and named and (not label or (label in labels and value in ("", labels[label])))


class Handler(LoopbackHandler):
    """Answers for the cluster of its server."""

    server: Server
    protocol_version = "HTTP/1.1"

    def date_time_string(self, timestamp: float | None = None) -> str:
        """Tell the time of the cluster's own clock."""
        return super().date_time_string((timestamp or time.time()) + self.server.cluster.ahead)

    def do_POST(self) -> None:
        """Review what a login may do, make a token of an account, or store an Event."""
        review = json.loads(self.body())
        cluster = self.server.cluster
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        cluster.asked.append((token, self.path, review))
        if cluster.token and token != cluster.token:
            self._answer(401, {"kind": "Status", "message": "Unauthorized"})
        elif review["kind"] == "Event":
            self._create_event(urlsplit(self.path).path, review)
        elif review["kind"] == "TokenRequest":
            lasts = min(review["spec"]["expirationSeconds"], cluster.longest_token)
            ends = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + lasts))
            token = f"token-{len(cluster.asked)}"
            self._answer(201, {**review, "status": {"token": token, "expirationTimestamp": ends}})
        elif review["kind"] == "SelfSubjectReview":
            self._answer(201, {**review, "status": {"userInfo": {"username": cluster.account}}})
        else:
            wanted = review["spec"]["resourceAttributes"]
            name = f"{wanted['resource']}.{wanted['group']}" if wanted.get("group") else wanted["resource"]
            place = f"{wanted.get('namespace')}/{name}"
            denied = {name, place, f"{place}/{wanted.get('name')}"} & cluster.denied
            self._answer(201, {**review, "status": {"allowed": not denied}})

    def _create_event(self, path: str, event: Raw) -> None:
        """Store an Event, unless one of its name is there or the login may not."""
        cluster = self.server.cluster
        metadata = event["metadata"]
        key = f"{metadata['namespace']}/{metadata['name']}"
        if status := next((one for end, one in cluster.refuses.items() if path.endswith(end)), 0):
            self._answer(status, {"kind": "Status", "message": f"{path} is refused"})
        elif key in cluster.objects.get("events", {}):
            message = f'events "{metadata["name"]}" already exists'
            self._answer(409, {"kind": "Status", "reason": "AlreadyExists", "message": message})
        else:
            cluster.put("events", event)
            self._answer(201, event)

    def do_PATCH(self) -> None:
        """Take an object by server-side apply, and store it unless it is tried alone."""
        body = json.loads(self.body())
        parts, cluster = urlsplit(self.path), self.server.cluster
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        cluster.asked.append((self.headers.get("Authorization", "").removeprefix("Bearer "), parts.path, query))
        plural, key = object_key(parts.path) or ("", "")
        space = key.partition("/")[0]
        if status := next((one for end, one in cluster.refuses.items() if parts.path.endswith(end)), 0):
            self._answer(status, {"kind": "Status", "message": f"{parts.path} is refused"})
        elif query["force"] == "false" and (
            other := next((one for end, one in cluster.managed.items() if parts.path.endswith(end)), None)
        ):
            message = f'conflict with "{other[0]}" using v1'
            causes = [{"reason": "FieldManagerConflict", "message": message, "field": other[1]}]
            self._answer(409, {"kind": "Status", "message": "Apply failed", "details": {"causes": causes}})
        elif space and f"/{space}" not in cluster.objects.get("namespaces", {}):
            self._answer(404, {"kind": "Status", "message": f'namespaces "{space}" not found'})
        else:
            before = cluster.objects.get(plural, {}).get(key, {})
            after = {**before, **body, "metadata": {**before.get("metadata", {}), **body["metadata"]}}
            if "dryRun" not in query:
                cluster.put(plural, after)
            self._answer(200, after)

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        self.server.cluster.asked.append((token, parts.path, query))
        if self.server.cluster.hangs.is_set():
            self.server.stopping.wait(5)
            return
        if self.server.cluster.token and token != self.server.cluster.token:
            self._answer(401, {"kind": "Status", "message": "Unauthorized"})
        elif status := next((one for end, one in self.server.cluster.refuses.items() if parts.path.endswith(end)), 0):
            self._answer(status, {"kind": "Status", "message": f"{parts.path} is refused"})
        elif target := next(
            (one for end, one in self.server.cluster.redirects.items() if parts.path.endswith(end)), ""
        ):
            self._answer(302, {}, Location=target)
        elif parts.path in self.server.cluster.documents:
            self._answer(200, self.server.cluster.documents[parts.path])
        elif "watch" in query:
            self._watch(parts.path, query)
        elif parts.path.count("/") < 3 + parts.path.startswith("/apis/"):
            self._discover(parts.path)
        elif (place := object_key(parts.path)) is not None:
            self._object(*place)
        else:
            self._list(parts.path, query)

    def _discover(self, path: str) -> None:
        """Tell what is served: the version of the server, its API groups, one of them, or the kinds of a version."""
        match path.strip("/").split("/"):
            case ["version"]:
                self._answer(200, {"gitVersion": "v1.37.0"})
            case ["apis"]:
                groups = self.server.cluster.groups
                self._answer(200, {"groups": [served(name, versions) for name, versions in groups.items()]})
            case ["apis", group]:
                self._group(group)
            case ["apis", group, version]:
                self._kinds(f"{group}/{version}")
            case _:
                self._answer(404, {"kind": "Status", "message": f"{path} is not there"})

    def _group(self, name: str) -> None:
        versions = self.server.cluster.groups.get(name, [])
        if not versions:
            self._answer(404, {"kind": "Status", "message": f"{name} is not served"})
        else:
            self._answer(200, served(name, versions))

    def _kinds(self, version: str) -> None:
        kinds = self.server.cluster.kinds.get(version)
        if kinds is None:
            self._answer(404, {"kind": "Status", "message": f"{version} is not served"})
        else:
            self._answer(200, {"resources": [{"name": plural} for plural in kinds]})

    def _object(self, plural: str, key: str) -> None:
        raw = self.server.cluster.objects.get(plural, {}).get(key)
        if raw is None:
            self._answer(404, {"kind": "Status", "message": f"{plural} {key} not found"})
        elif "as=PartialObjectMetadata" in self.headers["Accept"]:
            self._answer(200, {"kind": "PartialObjectMetadata", "metadata": raw["metadata"]})
        else:
            self._answer(200, raw)

    def _list(self, path: str, query: dict[str, str]) -> None:
        plural = stored(path)
        with self.server.cluster.changed:
            known = self.server.cluster.objects.get(plural, {}).values()
            items = [raw for raw in known if meant(raw, path, query)]
            metadata: Raw = {"resourceVersion": str(self.server.cluster.version)}
        first, most = int(query.get("continue", 0)), int(query.get("limit", len(items)))
        if first + most < len(items):
            metadata["continue"] = str(first + most)
        self._answer(200, {"metadata": metadata, "items": items[first : first + most]})

    def _watch(self, path: str, query: dict[str, str]) -> None:
        cluster = self.server.cluster
        if status := next((one for end, one in cluster.refuses_watches.items() if path.endswith(end)), 0):
            self._answer(status, {"kind": "Status", "message": f"a watch of {path} is refused"})
            return
        if error := next((one for end, one in cluster.ends_watches.items() if path.endswith(end)), None):
            self._answer(200, {"type": "ERROR", "object": error})
            return
        plural, version = stored(path), int(query["resourceVersion"])
        with cluster.changed:  # a drop comes before both or after both: else a watch would stand on a lost history
            gone, epoch = version < cluster.oldest, cluster.epoch
        if gone:
            self._answer(410, {"kind": "Status", "code": 410})
            return
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if cluster.curt.is_set():
            self.wfile.write(b"0\r\n\r\n")
            return
        while not self.server.stopping.is_set():
            with cluster.changed:
                events = () if cluster.mute.is_set() else cluster.events
                fresh = [one for one in events if one[0] > version and one[1] == plural]
                if not fresh and epoch == cluster.epoch:
                    cluster.changed.wait(0.1)
            if epoch != cluster.epoch:
                self.close_connection = True
                return
            for at, _, type_, raw in fresh:
                version = at
                if type_ not in ("BOOKMARK", "ERROR") and not meant(raw, path, query):
                    continue
                line = json.dumps({"type": type_, "object": raw}).encode() + b"\n"
                half = len(line) // 2
                for part in (line[:half], line[half:]):  # an event need not come in one piece
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))

    def _answer(self, status: int, body: Raw | bytes, **headers: str) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode() + b"\n"
        self.reply(status, data, headers)


class Server(LoopbackServer):
    def __init__(self, cluster: Cluster, trust: ssl.SSLContext | None) -> None:
        super().__init__(Handler, tls=trust)
        self.cluster = cluster
        self.stopping = threading.Event()


@contextmanager
def serving(cluster: Cluster, trust: ssl.SSLContext | None = None) -> Iterator[str]:
    """Serve a cluster on loopback, with TLS where there is a context for it."""
    with Server(cluster, trust) as server:
        cluster.url = server.url
        try:
            yield cluster.url
        finally:
            server.stopping.set()
            cluster.drop()


def kubeconfig(path: Path, *clusters: tuple[str, str], token: str = "") -> Path:
    """Write a kubeconfig with a context for each cluster."""
    path.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": name, "cluster": {"server": url}} for name, url in clusters],
                "users": [{"name": "reader", "user": {"token": token} if token else {}}],
                "contexts": [{"name": name, "context": {"cluster": name, "user": "reader"}} for name, _ in clusters],
            }
        )
    )
    return path
